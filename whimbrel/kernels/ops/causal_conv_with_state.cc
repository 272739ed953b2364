// CausalConvWithState: y[n, c, t] = f(b[c] + sum over k of w[c, 0, k] p[n, c, t + k]), p = the past
// state and then the input.
//
// in   input       [batch, channels, length]  f32 | f16 | bf16
//      weight      [channels, 1, k]
//      bias        [channels], optional
//      past_state  [batch, channels, k - 1], optional, default 0
// attr activation  none (default), silu or swish
// out  output         like input
//      present_state  [batch, channels, k - 1]: the last of p
// Source: ONNX operator CausalConvWithState (27).

#include <fmt/format.h>

#include "whimbrel/kernels/ops/check_dims.h"
#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

enum Input : size_t { kInput, kWeight, kBias, kPast };
constexpr TypeMask kTypes = TypeBit(DType::kFloat) | TypeBit(DType::kFloat16) | kBFloat16Type;

bool Activated(std::string_view op, const Attributes& attributes) {
  const std::string_view name = attributes.String("activation", "none");
  if (name == "none") return false;
  if (name == "silu" || name == "swish") return true;
  throw Error(Code::kInvalidData, fmt::format("{}: activation \"{}\" is not known", op, name));
}

void Infer(InferContext& c) {
  Activated(c.schema().name, c.attrs());
  Dims x(3);
  if (c.in(kInput).dims) x = *c.in(kInput).dims;
  if (x.size() != 3) c.Fail("input must have rank 3, is " + ToString(x));
  CheckDims(c, kWeight, {x[1], 1, Dim()});
  Dim state;
  if (c.in(kWeight).dims) {
    const Dim& k = (*c.in(kWeight).dims)[2];
    if (k.Is(0)) c.Fail("the kernel has no element");
    state = k - Dim(1);
  }
  CheckDims(c, kBias, {x[1]});
  CheckDims(c, kPast, {x[0], x[1], state});
  InferLikeFirst(c);
  c.SetOut(1, c.in(kInput).dtype, Dims{x[0], x[1], state});
}

Cost ConvCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops = 2 * static_cast<double>(call.x(kInput).elements()) *
               static_cast<double>(call.x(kWeight).shape()[2]);
  return cost;
}

template <typename T>
void RunTyped(const OpCall& call) {
  const Shape& shape = call.x(kInput).shape();
  const int64_t channels = shape[1], length = shape[2];
  const int64_t taps = call.x(kWeight).shape()[2], kept = taps - 1;
  const bool activated = Activated(call.schema->name, call.attrs());
  const auto optional = [&call](size_t i) {
    return call.has(i) ? call.x(i).template data<T>() : nullptr;
  };
  const T* x = call.x(kInput).template data<T>();
  const T* w = call.x(kWeight).template data<T>();
  const T* bias = optional(kBias);
  const T* past = optional(kPast);
  T* y = call.y(0).template data<T>();
  T* present = call.has_out(1) ? call.y(1).template data<T>() : nullptr;
  ParallelFor(shape[0] * channels, 4096 / (length * taps + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto padded = [&](int64_t i) {
        if (i >= kept) return x[row * length + i - kept];
        return past == nullptr ? T{} : past[row * kept + i];
      };
      for (int64_t t = 0; t < length; ++t) {
        double sum = bias == nullptr ? 0 : Widen(bias[row % channels]);
        for (int64_t k = 0; k < taps; ++k)
          sum += Widen(w[row % channels * taps + k]) * Widen(padded(t + k));
        y[row * length + t] = Narrow<T>(activated ? sum / (1 + std::exp(-sum)) : sum);
      }
      for (int64_t i = 0; present != nullptr && i < kept; ++i)
        present[row * kept + i] = padded(length + i);
    }
  });
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  DispatchReference<kTypes>(call, call.x(0).dtype(), [&]<typename T>() { RunTyped<T>(call); });
}

WHIMBREL_REGISTER(OpSchema{
    .name = "CausalConvWithState",
    .since = 27,
    .inputs = {{.name = "input", .types = kTypes, .group = 1},
               {.name = "weight", .types = kTypes, .group = 1},
               {.name = "bias", .types = kTypes, .optional = true, .group = 1},
               {.name = "past_state", .types = kTypes, .optional = true, .group = 1}},
    .outputs = {{.name = "output", .types = kTypes, .group = 1},
                {.name = "present_state", .types = kTypes, .group = 1}},
    .attributes = {{.name = "activation",
                    .type = AttributeType::kString,
                    .note = "none (default), silu or swish"}},
    .infer = Infer,
    .cost = ConvCost,
    .samples = {"f32:2x16x20 f32:16x1x4! f32:16! f32:2x16x3 activation=silu outputs=2",
                "f32:1x1x1 f32:1x1x1! outputs=2", "f32:2x3x2 f32:3x1x5! outputs=2",
                "f32:2x3x1 f32:3x1x4! - f32:2x3x3 activation=swish outputs=2",
                "f32:0x3x4 f32:3x1x4! outputs=2", "f32:2x3x0 f32:3x1x4! - f32:2x3x3 outputs=2",
                "f32:1x3x9 f32:3x1x3! nan=1", "f16:2x3x9 f16:3x1x4! f16:3! outputs=2",
                "bf16:2x3x9 bf16:3x1x4! outputs=2"},
    .matrix_op = true,
    .doc = "causal depthwise convolution with a carried state"});
WHIMBREL_REGISTER(Kernel{.op = "CausalConvWithState", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
