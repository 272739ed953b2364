// Softmax: y[r, e] = exp(x[r, e] - max_e x[r, e]) / sum_e of the same; a row of -inf alone gives
// NaN.
//
// in   input   any rank >= 1  f32 | f64 | f16, from opset 13 also bf16
// attr axis    from 13: the axis of a row, default -1; before: all dims from it on are one row,
// default 1 out  output  like input Source: ONNX operator Softmax (1, 11, 13).

#include <cmath>
#include <limits>

#include "whimbrel/kernels/ops/softmax_common.h"
#include "whimbrel/kernels/reference.h"

namespace whimbrel {
namespace {

template <typename T>
void RunRow(const T* x, T* y, int64_t length, int64_t step) {
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t e = 0; e < length; ++e) largest = std::max(largest, Widen(x[e * step]));
  double sum = 0;
  for (int64_t e = 0; e < length; ++e) sum += std::exp(Widen(x[e * step]) - largest);
  for (int64_t e = 0; e < length; ++e)
    y[e * step] = Narrow<T>(std::exp(Widen(x[e * step]) - largest) / sum);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const SoftmaxRows s = SoftmaxRowsOf(call);
  if (call.y(0).elements() == 0) return;
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    T* y = call.y(0).data<T>();
    ParallelFor(s.rows, 4096 / s.length + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t at = row / s.inner * s.length * s.inner + row % s.inner;
        RunRow(x + at, y + at, s.length, s.inner);
      }
    });
  });
}

WHIMBREL_REGISTER(SoftmaxSchema("Softmax", 1,
                                {"f32:3x16 opset=7", "f32:2x3x4", "f32:2x3x4 axis=2",
                                 "f64:6 axis=0"}));
WHIMBREL_REGISTER(SoftmaxSchema("Softmax", 11,
                                {"f32:2x3x4", "f32:2x3x4 axis=-1", "f32:2x3x4 axis=0", "f16:4x9",
                                 "f32:0x3 axis=1", "f32:2x5x7 axis=-2"}));
WHIMBREL_REGISTER(SoftmaxSchema("Softmax", 13,
                                {"f32:4x1000", "f32:1x1", "f32:2x3x4", "f32:2x3x4 axis=1",
                                 "f32:2x3x4 axis=0", "f32:3x5x7x9 axis=1", "f32:0x8", "f32:8x0",
                                 "f32:1x8x64x64", "f32:17", "f32:3x4@900..1000", "f32:3x8 nan=1",
                                 "f32:2x3={-inf,-inf,-inf,0,-inf,1}", "f64:5x6", "f16:3x40",
                                 "bf16:3x40", "f32:1x2x3@-3e38..3e38"}));
WHIMBREL_REGISTER(Kernel{.op = "Softmax", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
