// LRN: y[n, c, ..] = x[n, c, ..] / (bias + alpha / size * s)^beta, s = the sum of x[n, i, ..]^2
// over the channels i from c - floor((size - 1) / 2) to c + ceil((size - 1) / 2)
//
// in   X  f32 | f64 | f16 | bf16, [N, C, ..]
// attr size   int, at least 1
//      alpha  float, default 0.0001
//      beta   float, default 0.75
//      bias   float, default 1
// out  Y  like X
// Source: ONNX operator LRN (1, 13); Krizhevsky et al. 2012.

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  if (c.attrs().Int("size", 0) < 1) {
    c.Fail("size is " + std::to_string(c.attrs().Int("size", 0)), "it counts channels: 1 or more");
  }
  if (c.in(0).dims && c.in(0).rank() < 2) {
    c.Fail("X must be [N, C, ..], is " + ToString(*c.in(0).dims));
  }
  InferLikeFirst(c);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& shape = call.x(0).shape();
  if (shape.elements() == 0) return;
  const int64_t size = call.attrs().Int("size", 1);
  const double alpha = call.attrs().Float("alpha", 0.0001F) / static_cast<double>(size);
  const double beta = call.attrs().Float("beta", 0.75);
  const double bias = call.attrs().Float("bias", 1);
  const int64_t channels = shape[1];
  const int64_t inner = shape.Product(2, shape.rank());
  // A window beyond all channels is one over all channels.
  const int64_t before = std::min((size - 1) / 2, channels);
  const int64_t after = std::min(size / 2, channels);
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    T* y = call.y(0).data<T>();
    ParallelFor(shape.elements(), 1 + 16384 / (before + after + 1),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const int64_t c = i / inner % channels;
                    const T* column = x + i - c * inner;
                    double sum = 0;
                    for (int64_t k = std::max(int64_t{0}, c - before);
                         k <= std::min(channels - 1, c + after); ++k) {
                      const double value = Widen(column[k * inner]);
                      sum += value * value;
                    }
                    y[i] = Narrow<T>(Widen(x[i]) / std::pow(bias + alpha * sum, beta));
                  }
                });
  });
}

Cost LrnCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  const int64_t channels = call.x(0).shape().rank() < 2 ? 1 : call.x(0).shape()[1];
  cost.flops *= 2 * static_cast<double>(std::min(call.attrs().Int("size", 1), channels)) + 3;
  return cost;
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return MakeSchema({.name = "LRN",
                     .since = since,
                     .until = until,
                     .types = types,
                     .attributes = {{"size", AttributeType::kInt, true, "channels of the window"},
                                    {"alpha", AttributeType::kFloat, false, "default 0.0001"},
                                    {"beta", AttributeType::kFloat, false, "default 0.75"},
                                    {"bias", AttributeType::kFloat, false, "default 1"}},
                     .infer = Infer,
                     .cost = LrnCost,
                     .samples = std::move(samples)});
}

WHIMBREL_REGISTER(Schema(1, 13, kFloatTypesTo12,
                         {"f32:1x5x2x3 size=3 opset=7", "f16:2x3x4 size=2"}));
WHIMBREL_REGISTER(
    Schema(13, INT_MAX, kFloatTypes,
           {"f32:2x7x3x4 size=5", "f32:1x5x2x2 size=4 alpha=0.5", "f32:1x1x1x1 size=1",
            "f32:1x3x2x2 size=9223372036854775807", "f32:2x3 size=3 bias=2 beta=0.5",
            "f32:0x3x2x2 size=3", "f32:1x0x2x2 size=3", "f16:2x7x5 size=3 alpha=1",
            "bf16:2x7x5 size=3 alpha=1", "f64:1x4x2x2x2 size=3",
            "f32:1x96x27x27 size=5 alpha=0.0001 beta=0.75", "f32:1x8x1x1 size=3 nan=1"}));
WHIMBREL_REGISTER(Kernel{.op = "LRN", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
