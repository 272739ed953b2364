// NegativeLogLikelihoodLoss: loss[s] = -weight[target[s]] input[s, target[s]], then none, the sum,
// or the sum divided by that of the weights.
//
// in   input   [batch, classes, d...]  f32 | f64 | f16, from 22 bf16; log probabilities
//      target  [batch, d...]  i32 | i64
//      weight  [classes], optional
// attr ignore_index  int: targets that count 0; reduction  mean (default), sum or none
// out  loss    like target, or a scalar
// Source: ONNX operator NegativeLogLikelihoodLoss (12, 13, 22).

#include "whimbrel/kernels/ops/loss_common.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const LossSizes s = LossSizesOf(call);
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    StoreLoss<T>(call, [&](int64_t sample, int64_t c) { return Widen(x[s.At(sample, c)]); });
  });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return {.name = "NegativeLogLikelihoodLoss",
          .since = since,
          .until = until,
          .inputs = LossInputs("input", "target", "weight", types),
          .outputs = {{.name = "loss", .types = types, .group = 1}},
          .attributes = LossAttributes(),
          .infer = InferLoss,
          .samples = std::move(samples),
          .doc = "mean of the negative log probabilities of the targets"};
}

WHIMBREL_REGISTER(Schema(12, 22, kFloatTypesTo12,
                         {"f32:3x5 i64:3@0..4",
                          "f32:3x5x2x2 i32:3x2x2@0..4 f32:5 reduction=none"}));
WHIMBREL_REGISTER(Schema(22, INT_MAX, kFloatTypes,
                         {"f32:64x100 i64:64@0..99 f32:100@0..1", "f32:1x1 i64:1={0}",
                          "f32:3x5x7 i64:3x7@0..4 reduction=sum",
                          "f32:3x5 i64:3={1,-7,4} f32:5 ignore_index=-7",
                          "f32:0x5 i64:0 reduction=none", "f32:2x5 i64:2={3,3} ignore_index=3",
                          "f64:3x5 i32:3@0..4", "f16:3x5 i32:3@0..4", "bf16:3x5 i32:3@0..4"}));
WHIMBREL_REGISTER(Kernel{.op = "NegativeLogLikelihoodLoss", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
