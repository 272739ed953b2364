// Elementwise kernels: ONNX's unary and binary operators and ElementwiseChain as programs of steps.

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "whimbrel/kernels/cpu/hwy_elementwise.h"

namespace whimbrel {
namespace {

// An operator that is one step; `a` and `b` are attributes with their defaults.
struct OneStep {
  std::string_view op;
  StepOp step;
  std::string_view a = {};
  double a_default = 0;
  std::string_view b = {};
  double b_default = 0;
};

constexpr OneStep kUnary[] = {
    {"Relu", StepOp::kRelu},
    {"Sigmoid", StepOp::kSigmoid},
    {"Tanh", StepOp::kTanh},
    {"Exp", StepOp::kExp},
    {"Log", StepOp::kLog},
    {"Sqrt", StepOp::kSqrt},
    {"Reciprocal", StepOp::kReciprocal},
    {"Neg", StepOp::kNeg},
    {"Abs", StepOp::kAbs},
    {"Floor", StepOp::kFloor},
    {"Ceil", StepOp::kCeil},
    {"Round", StepOp::kRound},
    {"Sign", StepOp::kSign},
    {"Erf", StepOp::kErf},
    {"Softplus", StepOp::kSoftplus},
    {"Softsign", StepOp::kSoftsign},
    {"Mish", StepOp::kMish},
    {"HardSwish", StepOp::kHardSwish},
    {"HardSigmoid", StepOp::kHardSigmoid, "alpha", 0.2, "beta", 0.5},
    {"LeakyRelu", StepOp::kLeakyRelu, "alpha", 0.01},
    {"ThresholdedRelu", StepOp::kThresholdedRelu, "alpha", 1},
    {"Elu", StepOp::kElu, "alpha", 1},
    {"Celu", StepOp::kCelu, "alpha", 1},
    {"Selu", StepOp::kSelu, "alpha", 1.67326319217681884765625, "gamma", 1.05070102214813232421875},
    {"Swish", StepOp::kSilu, "alpha", 1},
    {"Sin", StepOp::kSin},
    {"Cos", StepOp::kCos},
};

constexpr OneStep kBinary[] = {
    {"Add", StepOp::kAdd}, {"Sub", StepOp::kSub}, {"Mul", StepOp::kMul},
    {"Div", StepOp::kDiv}, {"Pow", StepOp::kPow}, {"PRelu", StepOp::kPrelu},
};

std::unique_ptr<KernelState> PrepareUnary(const OpCall& call) {
  const auto one = std::find_if(std::begin(kUnary), std::end(kUnary),
                                [&](const OneStep& s) { return s.op == call.schema->name; });
  ChainStep step{.op = one->step};
  if (!one->a.empty()) step.a = call.attrs().Float(one->a, one->a_default);
  if (!one->b.empty()) step.b = call.attrs().Float(one->b, one->b_default);
  return std::make_unique<ElementwiseState>(std::span(&step, 1), call);
}

std::unique_ptr<KernelState> PrepareBinary(const OpCall& call) {
  const auto one = std::find_if(std::begin(kBinary), std::end(kBinary),
                                [&](const OneStep& s) { return s.op == call.schema->name; });
  const ChainStep step{.op = one->step, .operand = 1};
  return std::make_unique<ElementwiseState>(std::span(&step, 1), call);
}

std::unique_ptr<KernelState> PrepareGelu(const OpCall& call) {
  const bool tanh = call.attrs().String("approximate", "none") == "tanh";
  const ChainStep step{.op = tanh ? StepOp::kGeluTanh : StepOp::kGelu};
  return std::make_unique<ElementwiseState>(std::span(&step, 1), call);
}

// Max and Min of any number of inputs: one step for each after the first.
template <StepOp op>
std::unique_ptr<KernelState> PrepareExtreme(const OpCall& call) {
  std::vector<ChainStep> steps;
  for (size_t i = 1; i < call.in.size(); ++i) {
    steps.push_back({.op = op, .operand = static_cast<int>(i)});
  }
  // of one input: a copy, written as max(x, x)
  if (steps.empty()) steps.push_back({.op = op, .operand = 0});
  return std::make_unique<ElementwiseState>(steps, call);
}

// Limits are attributes (opset 6), or optional inputs that may change from run to run.
std::unique_ptr<KernelState> PrepareClip(const OpCall& call) {
  // ONNX's defaults are the largest finite numbers, so infinities are cut too
  constexpr float kLargest = std::numeric_limits<float>::max();
  std::array<double, 2> limits = {call.attrs().Float("min", -kLargest),
                                  call.attrs().Float("max", kLargest)};
  bool fixed = true;
  for (size_t i = 1; i <= 2; ++i) {
    if (call.has(i) && call.constant(i)) limits[i - 1] = *call.x(i).data<float>();
    fixed = fixed && (!call.has(i) || call.constant(i));
  }
  if (fixed) {
    const ChainStep step{.op = StepOp::kClip, .a = limits[0], .b = limits[1]};
    const size_t input = 0;
    return std::make_unique<ElementwiseState>(std::span(&step, 1), call, std::span(&input, 1));
  }
  std::vector<ChainStep> steps;
  std::vector<size_t> inputs = {0};
  for (size_t i = 1; i <= 2; ++i) {
    ChainStep step{.op = i == 1 ? StepOp::kMax : StepOp::kMin, .a = limits[i - 1]};
    if (call.has(i)) {
      step.operand = static_cast<int>(inputs.size());
      inputs.push_back(i);
    }
    steps.push_back(step);
  }
  return std::make_unique<ElementwiseState>(steps, call, inputs);
}

std::unique_ptr<KernelState> PrepareChain(const OpCall& call) {
  return std::make_unique<ElementwiseState>(
      ParseChain(call.attrs().Strings("program"), call.in.size()), call);
}

[[maybe_unused]] const bool registered = [] {
  const auto add = [](std::string_view op, std::unique_ptr<KernelState> (*prepare)(const OpCall&),
                      uint64_t in_place, std::string_view domain = {}) {
    Registry::Get().Add(Kernel{.op = op,
                               .domain = domain,
                               .name = "highway",
                               .rank = 50,
                               .layout = LayoutRule::kFollow,
                               .in_place = in_place,
                               .accepts = AcceptsElementwise,
                               .prepare = prepare,
                               .run = RunElementwiseCall});
  };
  constexpr uint64_t kAnyInput = (1u << kMaxChainInputs) - 1;
  for (const OneStep& one : kUnary) add(one.op, PrepareUnary, 1);
  for (const OneStep& one : kBinary) add(one.op, PrepareBinary, 3);
  add("Gelu", PrepareGelu, 1);
  add("Clip", PrepareClip, 1);
  add("Max", PrepareExtreme<StepOp::kMax>, kAnyInput);
  add("Min", PrepareExtreme<StepOp::kMin>, kAnyInput);
  add("ElementwiseChain", PrepareChain, kAnyInput, "whimbrel");
  return true;
}();

}  // namespace
}  // namespace whimbrel
