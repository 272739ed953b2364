// loss: what NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss share: targets, weights and the
// reduction.

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {

// Scores [batch, classes, d...], targets [batch, d...]: sample s is element s / inner, s % inner.
struct LossSizes {
  int64_t samples = 0, classes = 0, inner = 1;
  int64_t At(int64_t sample, int64_t c) const {
    return (sample / inner * classes + c) * inner + sample % inner;
  }
};
LossSizes LossSizesOf(const OpCall& call);

std::vector<Formal> LossInputs(std::string_view scores, std::string_view targets,
                               std::string_view weights, TypeMask types);
std::vector<AttributeSpec> LossAttributes();
// Output 0: the dims of the targets, or a scalar.
void InferLoss(InferContext& c);

// Writes output 0: the weighted -log_probability(sample, class) of each sample, their sum, or their
// mean by weight. Samples of ignore_index count 0.
template <typename T, typename F>
void StoreLoss(const OpCall& call, F log_probability);

int64_t TargetOf(const OpCall& call, int64_t sample);
// kInvalidData when a target is no class and is not ignored.
void CheckTargets(const OpCall& call);

template <typename T, typename F>
void StoreLoss(const OpCall& call, F log_probability) {
  const LossSizes s = LossSizesOf(call);
  CheckTargets(call);
  const bool ignores = call.attrs().Has("ignore_index");
  const int64_t ignored = call.attrs().Int("ignore_index", -1);
  const std::string_view reduction = call.attrs().String("reduction", "mean");
  const T* weights = call.has(2) ? call.x(2).template data<T>() : nullptr;
  T* y = call.y(0).template data<T>();
  double sum = 0, weight_sum = 0;
  for (int64_t sample = 0; sample < s.samples; ++sample) {
    const int64_t target = TargetOf(call, sample);
    double weight = 0, loss = 0;
    if (!ignores || target != ignored) {
      weight = weights == nullptr ? 1 : Widen(weights[target]);
      loss = -log_probability(sample, target) * weight;
    }
    if (reduction == "none") y[sample] = Narrow<T>(loss);
    sum += loss;
    weight_sum += weight;
  }
  if (reduction == "sum") y[0] = Narrow<T>(sum);
  if (reduction == "mean") y[0] = Narrow<T>(sum / weight_sum);
}

}  // namespace whimbrel
