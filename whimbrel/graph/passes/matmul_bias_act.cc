// MatMulBiasAct: MatMul with bias, residual Add and activation become one FusedMatMul.

#include <algorithm>

#include "whimbrel/graph/passes/editor.h"

namespace whimbrel {
namespace {

class MatMulFuser {
 public:
  MatMulFuser(Graph& graph, std::vector<PassNote>& notes) : e_(graph, "MatMulBiasAct", notes) {}

  void Run() {
    for (int n = 0; n < e_.size(); ++n) {
      if (e_.Is(n, "MatMul")) Fuse(n);
    }
  }

 private:
  void Fuse(int n) {
    const Node matmul = e_.node(n);
    const auto shape = e_.ShapeOf(matmul.outputs[0]);
    if (!shape || shape->rank() < 2 || e_.info(matmul.outputs[0]).dtype != DType::kFloat) return;
    std::vector<int> taken{n};
    ValueId value = matmul.outputs[0];
    const ValueId bias = TakeAdd(value, taken, *shape, true);
    const ValueId residual = TakeAdd(value, taken, *shape, false);
    const auto activation = MatchActivation(e_, value, (*shape)[-1], true);
    if (activation) {
      taken.insert(taken.end(), activation->nodes.begin(), activation->nodes.end());
      value = activation->output;
    }
    if (taken.size() == 1) return;
    std::vector<ValueId> inputs{matmul.inputs[0], matmul.inputs[1], bias, residual,
                                activation ? activation->slope : kNoValue};
    while (inputs.back() == kNoValue) inputs.pop_back();
    Node fused = e_.MakeNode("FusedMatMul", "whimbrel", inputs, {value}, 1);
    if (activation) {
      fused.attributes.Set("activation", activation->name);
      fused.attributes.Set("activation_alpha", activation->alpha);
      fused.attributes.Set("activation_beta", activation->beta);
    }
    fused.name = matmul.name;
    e_.Replace(taken, std::move(fused));
  }

  // A constant that broadcasts without growing the output, or a tensor of the output's own shape.
  ValueId TakeAdd(ValueId& value, std::vector<int>& taken, const Shape& shape, bool constant) {
    const int next = e_.SoleConsumer(value);
    if (!e_.Is(next, "Add")) return kNoValue;
    const ValueId other = e_.OtherInput(next, value);
    if (other == value || other == kNoValue || e_.graph().is_constant(other) != constant)
      return kNoValue;
    const auto other_shape = e_.ShapeOf(other);
    if (!other_shape || e_.info(other).dtype != DType::kFloat) return kNoValue;
    if (constant) {
      // One value a column: what every GEMM takes as bias.
      if (other_shape->elements() != shape[-1] || other_shape->rank() == 0 ||
          (*other_shape)[-1] != shape[-1] || other_shape->rank() > shape.rank())
        return kNoValue;
    } else if (!(*other_shape == shape)) {
      return kNoValue;
    }
    value = e_.node(next).outputs[0];
    taken.push_back(next);
    return other;
  }

  GraphEditor e_;
};

void Run(Graph& graph, std::vector<PassNote>& notes) {
  MatMulFuser(graph, notes).Run();
}

const RegisterPass registered({.name = "MatMulBiasAct",
                               .summary = "MatMul + bias + residual Add + activation",
                               .order = 30,
                               .run = Run});

}  // namespace
}  // namespace whimbrel
