// STFT: y[b, f, k] = sum over j of window[j] x[b, f step + j] e^(-2 pi i j k / n), n = frame
// length.
//
// in   signal        [batch, length, 1] real or [batch, length, 2] complex  f32 | f64 | f16 | bf16
//      frame_step    i32 | i64 scalar
//      window        [n], optional, default 1
//      frame_length  n, i32 | i64 scalar, optional: default that of window, else of the signal
// attr onesided      1 (default): only the n / 2 + 1 first bins, of a real signal
// out  output        [batch, (length - n) / step + 1, bins, 2]
// Source: ONNX operator STFT (17).

#include <fmt/format.h>

#include "whimbrel/kernels/ops/check_dims.h"
#include "whimbrel/kernels/ops/dft_common.h"

namespace whimbrel {
namespace {

enum Input : size_t { kSignal, kStep, kWindow, kLength };
constexpr int64_t kMost = int64_t{1} << 40;

void Infer(InferContext& c) {
  const bool onesided = c.attrs().Int("onesided", 1) != 0;
  Dims x(3);
  if (c.in(kSignal).dims) x = *c.in(kSignal).dims;
  if (x.size() != 3) c.Fail("signal must have rank 3, is " + ToString(x));
  if (x[2].known() && !x[2].Is(1) && !x[2].Is(2))
    c.Fail("the last dim of " + ToString(x) + " must be 1 (real) or 2 (complex)");
  if (onesided && x[2].Is(2)) c.Fail("onesided needs a real signal");
  Dim window;
  if (c.has(kWindow) && c.in(kWindow).dims) {
    if (c.in(kWindow).rank() != 1) c.Fail("window must have rank 1");
    window = c.in(kWindow).dims->front();
  }
  Dim n;
  if (c.has(kLength)) {
    if (const auto length = InferPositive(c, kLength, kMost)) n = *length;
    if (n.known() && window.known() && !n.Is(window.value()))
      c.Fail(fmt::format("frame_length {} and window {} differ", n.value(), window.value()));
  } else {
    n = c.has(kWindow) ? window : x[1];
  }
  Dim frames;
  const auto step = InferPositive(c, kStep, kMost);
  if (n.known() && x[1].known() && (n.value() < 1 || n.value() > x[1].value()))
    c.Fail(fmt::format("frames of {} in a signal of {}", n.value(), x[1].value()));
  if (step) frames = FloorDiv(x[1] - n, Dim(*step)) + Dim(1);
  const Dim bins = onesided ? FloorDiv(n, Dim(2)) + Dim(1) : n;
  c.SetOut(0, c.in(kSignal).dtype, Dims{x[0], frames, bins, 2});
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& x = call.x(kSignal).shape();
  const int64_t length = x[1];
  int64_t n = call.has(kWindow) ? call.x(kWindow).elements() : length;
  if (call.has(kLength)) n = ElementAsInt64(call.x(kLength), 0);
  const int64_t step = ElementAsInt64(call.x(kStep), 0);
  if (n < 1 || n > length || step < 1 || (call.has(kWindow) && call.x(kWindow).elements() != n)) {
    throw Error(Code::kInvalidData,
                fmt::format("STFT: frames of {}, {} apart, in a signal of {}", n, step, length));
  }
  const int64_t frames = (length - n) / step + 1;
  const int64_t bins = call.attrs().Int("onesided", 1) != 0 ? n / 2 + 1 : n;
  call.ResizeOutput(0, call.x(0).dtype(), Shape{x[0], frames, bins, 2});
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* signal = call.x(kSignal).data<T>();
    const T* window = call.has(kWindow) ? call.x(kWindow).data<T>() : nullptr;
    T* y = call.y(0).data<T>();
    ParallelFor(x[0] * frames * bins, 16384 / n + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t base = i / bins / frames * length + i / bins % frames * step;
        const auto sum = FourierSum(n, i % bins, n, -1, [&](int64_t j) {
          const double weight = window == nullptr ? 1 : Widen(window[j]);
          return weight * ComplexAt(signal, base + j, x[2] == 2);
        });
        y[2 * i] = Narrow<T>(sum.real());
        y[2 * i + 1] = Narrow<T>(sum.imag());
      }
    });
  });
}

Cost TransformCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  const auto elements = static_cast<double>(call.y(0).elements());
  cost.flops = 5 * elements * std::log2(std::max(elements, 2.0));
  return cost;
}

WHIMBREL_REGISTER(OpSchema{
    .name = "STFT",
    .since = 17,
    .inputs = {{.name = "signal", .types = kFloatTypes, .group = 1},
               {.name = "frame_step", .types = kIndexTypes, .group = 2},
               {.name = "window", .types = kFloatTypes, .optional = true, .group = 1},
               {.name = "frame_length", .types = kIndexTypes, .optional = true, .group = 2}},
    .outputs = {{.name = "output", .types = kFloatTypes, .group = 1}},
    .attributes = {{.name = "onesided",
                    .type = AttributeType::kInt,
                    .note = "1 (default): the first half of the bins"}},
    .infer = Infer,
    .cost = TransformCost,
    .samples = {"f32:2x128x1 i64:={8}! f32:16!", "f32:1x1x1 i64:={1}!",
                "f32:2x50x1 i64:={7} - i64:={11}",
                "f32:2x50x2 i32:={7}! f32:11 i32:={11}! onesided=0", "f32:0x50x1 i64:={7}! f32:11",
                "f32:1x20x1 i64:={3}! f32:6 nan=1", "f64:2x50x1 i64:={7}! f64:11 onesided=0",
                "f16:2x50x1 i64:={7}! f16:11", "bf16:2x50x1 i64:={7}! bf16:11"},
    .matrix_op = true,
    .doc = "Fourier transforms of windowed frames"});
WHIMBREL_REGISTER(Kernel{.op = "STFT", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
