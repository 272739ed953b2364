// RnnActivation: the functions that recurrent ops name in their attribute activations.

#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "whimbrel/kernels/kernels.h"

namespace whimbrel {

enum class RnnFunction : uint8_t {
  kSigmoid,
  kTanh,
  kRelu,
  kAffine,           // alpha x + beta
  kLeakyRelu,        // alpha x below 0
  kThresholdedRelu,  // x where x > alpha, else 0
  kScaledTanh,       // alpha tanh(beta x)
  kHardSigmoid,      // max(0, min(1, alpha x + beta))
  kElu,              // alpha (e^x - 1) below 0
  kSoftsign,         // x / (1 + |x|)
  kSoftplus,         // log(1 + e^x)
};

struct RnnActivation {
  RnnFunction function = RnnFunction::kSigmoid;
  double alpha = 0;
  double beta = 0;

  double operator()(double x) const;
};

// Fills `out` from the attributes activations, activation_alpha and activation_beta; names in any
// case. Factors are consumed in order by those functions that have one. `defaults` when the list is
// absent. Throws kInvalidData for unknown names and lists of another length. Allocates nothing.
void ReadRnnActivations(std::string_view op, const Attributes& attributes,
                        std::span<const RnnFunction> defaults, std::span<RnnActivation> out);

}  // namespace whimbrel
