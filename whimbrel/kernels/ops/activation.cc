// Activation names and defaults.

#include "whimbrel/kernels/ops/activation.h"

#include <array>
#include <limits>

#include <fmt/format.h>

namespace whimbrel {
namespace {

struct Known {
  std::string_view name;
  Activation defaults;
};

constexpr std::array<Known, 10> kKnown{{
    {"none", {ActivationKind::kNone, 0, 0}},
    {"Relu", {ActivationKind::kRelu, 0, 0}},
    {"Clip",
     {ActivationKind::kClip, std::numeric_limits<float>::lowest(),
      std::numeric_limits<float>::max()}},
    {"HardSigmoid", {ActivationKind::kHardSigmoid, 0.2, 0.5}},
    {"HardSwish", {ActivationKind::kHardSwish, 0, 0}},
    {"Sigmoid", {ActivationKind::kSigmoid, 0, 0}},
    {"Tanh", {ActivationKind::kTanh, 0, 0}},
    {"LeakyRelu", {ActivationKind::kLeakyRelu, 0.01, 0}},
    {"PRelu", {ActivationKind::kPRelu, 0, 0}},
    {"Swish", {ActivationKind::kSwish, 1, 0}},
}};

}  // namespace

Activation ReadActivation(std::string_view op, const Attributes& attributes) {
  const std::string_view name = attributes.String("activation", "none");
  for (const Known& known : kKnown) {
    if (known.name != name) continue;
    return {known.defaults.kind, attributes.Float("activation_alpha", known.defaults.alpha),
            attributes.Float("activation_beta", known.defaults.beta)};
  }
  throw Error(Code::kInvalidData, fmt::format("{}: activation \"{}\" is not known", op, name));
}

std::vector<AttributeSpec> ActivationAttributes() {
  return {{.name = "activation",
           .type = AttributeType::kString,
           .note = "none (default), Relu, Clip, HardSigmoid, HardSwish, Sigmoid, Tanh, LeakyRelu, "
                   "PRelu, Swish"},
          {.name = "activation_alpha",
           .type = AttributeType::kFloat,
           .note = "Clip: min; HardSigmoid, LeakyRelu, Swish: alpha"},
          {.name = "activation_beta",
           .type = AttributeType::kFloat,
           .note = "Clip: max; HardSigmoid: beta"}};
}

void CheckActivation(const InferContext& c, size_t slope_input) {
  const bool prelu = ReadActivation(c.schema().name, c.attrs()).kind == ActivationKind::kPRelu;
  if (prelu && !c.has(slope_input)) c.Fail("activation PRelu needs the input slope");
  if (!prelu && c.has(slope_input)) c.Fail("the input slope is for activation PRelu");
}

}  // namespace whimbrel
