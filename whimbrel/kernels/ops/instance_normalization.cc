// InstanceNormalization: y = (x - mean) / sqrt(variance + epsilon) * scale[c] + B[c], with the
// moments of each channel of each batch entry.
//
// in   input     [batch, channels, spatial...]  f32 | f64 | f16, from opset 22 also bf16
//      scale, B  [channels]
// attr epsilon   float, default 1e-5, added to the variance
// out  output    like input
// Source: ONNX operator InstanceNormalization (6, 22); Ulyanov et al. 2016.

#include "whimbrel/kernels/ops/norm_common.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  if (c.in(0).dims) {
    const Dims& x = *c.in(0).dims;
    if (x.size() < 2) c.Fail("data " + ToString(x) + " needs a batch and a channel axis");
    for (size_t i : {size_t{1}, size_t{2}}) CheckDims(c, i, {x[1]});
  }
  InferLikeFirst(c);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    NormalizeGroups<T>(call, call.x(0).shape()[1], call.attrs().Float("epsilon", 1e-5F),
                       [](int64_t channel) { return channel; });
  });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return {.name = "InstanceNormalization",
          .since = since,
          .until = until,
          .inputs = {{.name = "input", .types = types, .group = 1},
                     {.name = "scale", .types = types, .group = 1},
                     {.name = "B", .types = types, .group = 1}},
          .outputs = {{.name = "output", .types = types, .group = 1}},
          .attributes = {{.name = "epsilon",
                          .type = AttributeType::kFloat,
                          .note = "default 1e-5, added to the variance"}},
          .infer = Infer,
          .cost = NormCost,
          .samples = std::move(samples),
          .doc = "zero mean and unit variance for each channel"};
}

WHIMBREL_REGISTER(Schema(6, 22, kFloatTypesTo12,
                         {"f32:1x64x40x40 f32:64! f32:64!", "f32:1x1x1 f32:1! f32:1!",
                          "f32:3x5x7x3 f32:5! f32:5! epsilon=1e-3", "f32:0x4x3 f32:4! f32:4!",
                          "f32:2x4x9 f32:4! f32:4! nan=1", "f64:2x4x3x3x3 f64:4! f64:4!",
                          "f16:2x4x9 f16:4! f16:4!"}));
WHIMBREL_REGISTER(Schema(22, INT_MAX, kFloatTypes,
                         {"f32:2x4x9 f32:4! f32:4!", "bf16:2x4x9 bf16:4! bf16:4!"}));
WHIMBREL_REGISTER(Kernel{
    .op = "InstanceNormalization", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
