// Activation: the elementwise function that FusedConv and FusedMatMul apply to their sums.

#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "whimbrel/kernels/kernels.h"

namespace whimbrel {

enum class ActivationKind : uint8_t {
  kNone,
  kRelu,
  kClip,         // alpha = min, beta = max
  kHardSigmoid,  // max(0, min(1, alpha x + beta)); 0.2 and 0.5
  kHardSwish,    // x max(0, min(1, x / 6 + 0.5))
  kSigmoid,
  kTanh,
  kLeakyRelu,  // alpha x below 0; 0.01
  kPRelu,      // slope x below 0, the slope is an input
  kSwish,      // x sigmoid(alpha x); 1
};

struct Activation {
  ActivationKind kind = ActivationKind::kNone;
  double alpha = 0;
  double beta = 0;
};

// From the attributes activation, activation_alpha and activation_beta; kInvalidData for unknown
// names.
Activation ReadActivation(std::string_view op, const Attributes& attributes);
std::vector<AttributeSpec> ActivationAttributes();
// The infer check: the name is known, and PRelu alone has the slope input.
void CheckActivation(const InferContext& c, size_t slope_input);

inline double Activate(const Activation& a, double x, double slope) {
  const auto unit = [](double v) { return v < 0 ? 0 : (v > 1 ? 1 : v); };  // NaN stays
  switch (a.kind) {
    case ActivationKind::kNone:
      return x;
    case ActivationKind::kRelu:
      return x < 0 ? 0 : x;
    case ActivationKind::kClip:
      return x < a.alpha ? a.alpha : (x > a.beta ? a.beta : x);
    case ActivationKind::kHardSigmoid:
      return unit(a.alpha * x + a.beta);
    case ActivationKind::kHardSwish:
      return x * unit(x / 6 + 0.5);
    case ActivationKind::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case ActivationKind::kTanh:
      return std::tanh(x);
    case ActivationKind::kLeakyRelu:
      return x < 0 ? a.alpha * x : x;
    case ActivationKind::kPRelu:
      return x < 0 ? slope * x : x;
    case ActivationKind::kSwish:
      return x / (1 + std::exp(-a.alpha * x));
  }
  return x;
}

}  // namespace whimbrel
