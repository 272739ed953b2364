// ElementwiseChain: runs of elementwise float nodes become one node that touches memory once.

#include "whimbrel/kernels/ops/elementwise_chain.h"

#include <array>
#include <limits>

#include <fmt/format.h>

#include "whimbrel/graph/passes/editor.h"

namespace whimbrel {
namespace {

struct BinaryWord {
  std::string_view op;
  std::string_view word;      // value OP operand
  std::string_view reversed;  // operand OP value
};
constexpr std::array<BinaryWord, 7> kBinary{{{"Add", "add", "add"},
                                             {"Sub", "sub", "rsub"},
                                             {"Mul", "mul", "mul"},
                                             {"Div", "div", "rdiv"},
                                             {"Max", "max", "max"},
                                             {"Min", "min", "min"},
                                             {"Pow", "pow", "rpow"}}};
constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kUnary{
    {{"Relu", "relu"},
     {"Sigmoid", "sigmoid"},
     {"Tanh", "tanh"},
     {"Exp", "exp"},
     {"Log", "log"},
     {"Sqrt", "sqrt"},
     {"Reciprocal", "reciprocal"},
     {"Neg", "neg"},
     {"Abs", "abs"},
     {"Floor", "floor"},
     {"Ceil", "ceil"},
     {"Erf", "erf"},
     {"HardSwish", "hardswish"}}};

// Enough digits to give the same float back.
std::string Number(double v) {
  return fmt::format("{:.9g}", v);
}

class ChainFuser {
 public:
  ChainFuser(Graph& graph, std::vector<PassNote>& notes) : e_(graph, "ElementwiseChain", notes) {}

  void Run() {
    for (int n = 0; n < e_.size(); ++n) Start(n);
  }

 private:
  void Start(int first) {
    if (e_.node(first).op.empty() || e_.node(first).outputs.size() != 1) return;
    const auto shape = e_.ShapeOf(e_.node(first).outputs[0]);
    if (!shape || e_.info(e_.node(first).outputs[0]).dtype != DType::kFloat) return;
    program_.clear();
    inputs_.clear();
    std::vector<int> taken;
    // The operand of the output's own shape carries the value.
    for (ValueId id : e_.node(first).inputs) {
      if (id == kNoValue || e_.graph().is_constant(id) || e_.info(id).dtype != DType::kFloat ||
          e_.ShapeOf(id) != shape)
        continue;
      inputs_ = {id};
      break;
    }
    if (inputs_.empty() || !Take(first, inputs_[0], *shape)) return;
    taken.push_back(first);
    ValueId value = e_.node(first).outputs[0];
    while (program_.size() < kMaxChainSteps) {
      const int next = e_.SoleConsumer(value);
      if (next < 0 || e_.node(next).outputs.size() != 1 ||
          e_.ShapeOf(e_.node(next).outputs[0]) != shape)
        break;
      if (!Take(next, value, *shape)) break;
      taken.push_back(next);
      value = e_.node(next).outputs[0];
    }
    if (taken.size() < 2) return;
    Node chain = e_.MakeNode("ElementwiseChain", "whimbrel", inputs_, {value}, 1);
    chain.attributes.Set("program", program_);
    e_.Replace(taken, std::move(chain));
  }

  // Appends the step that node n does to `value`; false leaves program and inputs as they were.
  bool Take(int n, ValueId value, const Shape& shape) {
    const Node& node = e_.node(n);
    if (!node.domain.empty() || e_.info(node.outputs[0]).dtype != DType::kFloat) return false;
    for (const auto& [op, word] : kUnary) {
      if (node.op != op) continue;
      program_.emplace_back(word);
      return true;
    }
    if (node.op == "HardSigmoid") {
      program_.push_back(fmt::format("hardsigmoid:{}:{}",
                                     Number(node.attributes.Float("alpha", 0.2)),
                                     Number(node.attributes.Float("beta", 0.5))));
      return true;
    }
    if (node.op == "LeakyRelu") {
      program_.push_back("leakyrelu:" + Number(node.attributes.Float("alpha", 0.01)));
      return true;
    }
    if (node.op == "Clip") return TakeClip(node, value);
    for (const BinaryWord& binary : kBinary) {
      if (node.op == binary.op) return TakeBinary(node, binary, value, shape);
    }
    return false;
  }

  bool TakeClip(const Node& node, ValueId value) {
    double low = -std::numeric_limits<float>::max();
    double high = std::numeric_limits<float>::max();
    if (node.inputs[0] != value) return false;
    if (node.opset < 11) {
      low = node.attributes.Float("min", low);
      high = node.attributes.Float("max", high);
    }
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      const auto bound = e_.ScalarConstant(node.inputs[i]);
      if (!bound) return false;
      (i == 1 ? low : high) = *bound;
    }
    // An open side would clip infinities to the largest float, which Clip does not.
    if (low <= -std::numeric_limits<float>::max() || high >= std::numeric_limits<float>::max() ||
        !(low <= high))
      return false;
    program_.push_back(fmt::format("clip:{}:{}", Number(low), Number(high)));
    return true;
  }

  bool TakeBinary(const Node& node, const BinaryWord& binary, ValueId value, const Shape& shape) {
    if (node.inputs.size() != 2) return false;
    const bool first = node.inputs[0] == value;
    const ValueId other = first ? node.inputs[1] : node.inputs[0];
    const std::string word(first ? binary.word : binary.reversed);
    if (other == value && value != inputs_[0]) return false;
    if (const auto c = e_.ScalarConstant(other);
        c && e_.info(other).dims->size() <= static_cast<size_t>(shape.rank())) {
      program_.push_back(word + ":c" + Number(*c));
      return true;
    }
    if (e_.info(other).dtype != DType::kFloat || !e_.ShapeOf(other)) return false;
    Shape joined;
    if (!BroadcastShapes(shape, *e_.ShapeOf(other), &joined) || !(joined == shape)) return false;
    size_t index = 0;
    while (index < inputs_.size() && inputs_[index] != other) ++index;
    if (index == inputs_.size()) {
      if (inputs_.size() >= kMaxChainInputs) return false;
      inputs_.push_back(other);
    }
    program_.push_back(fmt::format("{}:{}", word, index));
    return true;
  }

  GraphEditor e_;
  std::vector<std::string> program_;
  std::vector<ValueId> inputs_;
};

void Run(Graph& graph, std::vector<PassNote>& notes) {
  ChainFuser(graph, notes).Run();
}

const RegisterPass registered({.name = "ElementwiseChain",
                               .summary = "runs of elementwise float nodes in one pass over memory",
                               .order = 50,
                               .run = Run});

}  // namespace
}  // namespace whimbrel
