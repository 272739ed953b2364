// SoftmaxCrossEntropyLoss: loss[s] = -weight[label[s]] log softmax(scores[s])[label[s]], then none,
// the sum, or the sum divided by that of the weights.
//
// in   scores   [batch, classes, d...]  f32 | f64 | f16, from 13 bf16
//      labels   [batch, d...]  i32 | i64
//      weights  [classes], optional
// attr ignore_index  int: labels that count 0; reduction  mean (default), sum or none
// out  output   like labels, or a scalar
//      log_prob like scores: log softmax along the classes; optional
// Source: ONNX operator SoftmaxCrossEntropyLoss (12, 13).

#include "whimbrel/kernels/ops/loss_common.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  InferLoss(c);
  c.SetOut(1, c.in(0).dtype, c.in(0).dims);
}

// The logarithm of the sum of exponentials of a sample's scores.
template <typename T>
double LogSum(const T* x, const LossSizes& s, int64_t sample) {
  double highest = Widen(x[s.At(sample, 0)]), sum = 0;
  for (int64_t c = 1; c < s.classes; ++c) highest = std::max(highest, Widen(x[s.At(sample, c)]));
  for (int64_t c = 0; c < s.classes; ++c) sum += std::exp(Widen(x[s.At(sample, c)]) - highest);
  return highest + std::log(sum);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const LossSizes s = LossSizesOf(call);
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    StoreLoss<T>(call, [&](int64_t sample, int64_t c) {
      return Widen(x[s.At(sample, c)]) - LogSum(x, s, sample);
    });
    if (!call.has_out(1) || call.y(1).elements() == 0) return;
    T* y = call.y(1).data<T>();
    ParallelFor(s.samples, 4096 / s.classes + 1, [&](int64_t begin, int64_t end) {
      for (int64_t sample = begin; sample < end; ++sample) {
        const double log_sum = LogSum(x, s, sample);
        for (int64_t c = 0; c < s.classes; ++c) {
          const int64_t at = s.At(sample, c);
          y[at] = Narrow<T>(Widen(x[at]) - log_sum);
        }
      }
    });
  });
}

Cost LossCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops = 4 * static_cast<double>(call.x(0).elements());
  return cost;
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return {.name = "SoftmaxCrossEntropyLoss",
          .since = since,
          .until = until,
          .inputs = LossInputs("scores", "labels", "weights", types),
          .outputs = {{.name = "output", .types = types, .group = 1},
                      {.name = "log_prob", .types = types, .optional = true, .group = 1}},
          .attributes = LossAttributes(),
          .infer = Infer,
          .cost = LossCost,
          .samples = std::move(samples),
          .doc = "cross entropy of the softmax of scores"};
}

WHIMBREL_REGISTER(Schema(12, 13, kFloatTypesTo12, {"f32:3x5 i64:3@0..4"}));
WHIMBREL_REGISTER(
    Schema(13, INT_MAX, kFloatTypes,
           {"f32:64x100 i64:64@0..99 f32:100@0..1 outputs=2", "f32:1x1 i64:1={0}",
            "f32:3x5x2x2 i32:3x2x2@0..4 f32:5 reduction=none outputs=2",
            "f32:3x5x7 i64:3x7@0..4 reduction=sum", "f32:3x5 i64:3={1,-7,4} f32:5 ignore_index=-7",
            "f32:0x5 i64:0 reduction=none outputs=2", "f32:3x5 i64:3@0..4 nan=1",
            "f64:3x5 i32:3@0..4 outputs=2", "f16:3x5 i32:3@0..4", "bf16:3x5 i32:3@0..4"}));
WHIMBREL_REGISTER(Kernel{.op = "SoftmaxCrossEntropyLoss", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
