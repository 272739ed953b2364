// Names, defaults and values of the recurrent ops' functions.

#include "whimbrel/kernels/ops/rnn_activation.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>

#include <fmt/format.h>

namespace whimbrel {
namespace {

struct Known {
  std::string_view name;  // lower case
  RnnFunction function;
  bool has_alpha, has_beta;
  double alpha, beta;  // defaults
};

constexpr std::array<Known, 11> kKnown{{
    {"sigmoid", RnnFunction::kSigmoid, false, false, 0, 0},
    {"tanh", RnnFunction::kTanh, false, false, 0, 0},
    {"relu", RnnFunction::kRelu, false, false, 0, 0},
    {"affine", RnnFunction::kAffine, true, true, 1, 0},
    {"leakyrelu", RnnFunction::kLeakyRelu, true, false, 0.01, 0},
    {"thresholdedrelu", RnnFunction::kThresholdedRelu, true, false, 1, 0},
    {"scaledtanh", RnnFunction::kScaledTanh, true, true, 1, 1},
    {"hardsigmoid", RnnFunction::kHardSigmoid, true, true, 0.2, 0.5},
    {"elu", RnnFunction::kElu, true, false, 1, 0},
    {"softsign", RnnFunction::kSoftsign, false, false, 0, 0},
    {"softplus", RnnFunction::kSoftplus, false, false, 0, 0},
}};

bool SameWord(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), [](char a, char b) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(a))) == b;
  });
}

const Known& FindKnown(std::string_view op, std::string_view name) {
  for (const Known& known : kKnown) {
    if (SameWord(name, known.name)) return known;
  }
  throw Error(Code::kInvalidData, fmt::format("{}: activation \"{}\" is not known", op, name));
}

const Known& EntryOf(RnnFunction function) {
  return *std::find_if(kKnown.begin(), kKnown.end(),
                       [function](const Known& k) { return k.function == function; });
}

}  // namespace

double RnnActivation::operator()(double x) const {
  switch (function) {
    case RnnFunction::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case RnnFunction::kTanh:
      return std::tanh(x);
    case RnnFunction::kRelu:
      return x < 0 ? 0 : x;
    case RnnFunction::kAffine:
      return alpha * x + beta;
    case RnnFunction::kLeakyRelu:
      return x < 0 ? alpha * x : x;
    case RnnFunction::kThresholdedRelu:
      return x > alpha ? x : 0;
    case RnnFunction::kScaledTanh:
      return alpha * std::tanh(beta * x);
    case RnnFunction::kHardSigmoid:
      return std::max(0.0, std::min(1.0, alpha * x + beta));
    case RnnFunction::kElu:
      return x < 0 ? alpha * std::expm1(x) : x;
    case RnnFunction::kSoftsign:
      return x / (1 + std::abs(x));
    case RnnFunction::kSoftplus:
      return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  }
  return x;
}

void ReadRnnActivations(std::string_view op, const Attributes& attributes,
                        std::span<const RnnFunction> defaults, std::span<RnnActivation> out) {
  const auto names = attributes.Strings("activations");
  const auto alphas = attributes.Floats("activation_alpha");
  const auto betas = attributes.Floats("activation_beta");
  if (!names.empty() && names.size() != out.size()) {
    throw Error(Code::kInvalidData,
                fmt::format("{}: activations names {} functions, {} are needed", op, names.size(),
                            out.size()),
                "one for each gate function and direction");
  }
  size_t next_alpha = 0, next_beta = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const Known& known =
        names.empty() ? EntryOf(defaults[i % defaults.size()]) : FindKnown(op, names[i]);
    out[i] = {known.function, known.alpha, known.beta};
    if (known.has_alpha && next_alpha < alphas.size())
      out[i].alpha = static_cast<double>(alphas[next_alpha++]);
    if (known.has_beta && next_beta < betas.size())
      out[i].beta = static_cast<double>(betas[next_beta++]);
  }
}

}  // namespace whimbrel
