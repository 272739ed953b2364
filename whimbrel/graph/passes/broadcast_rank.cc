// BroadcastRank: constant operands of elementwise nodes get the rank of the output, so that they
// follow its layout.

#include <algorithm>
#include <array>

#include "whimbrel/graph/passes/editor.h"

namespace whimbrel {
namespace {

constexpr std::array<std::string_view, 8> kOps{"Add", "Sub", "Mul", "Div",
                                               "Pow", "Max", "Min", "PRelu"};

void Run(Graph& graph, std::vector<PassNote>& notes) {
  for (Node& node : graph.nodes) {
    if (!node.domain.empty() || std::find(kOps.begin(), kOps.end(), node.op) == kOps.end())
      continue;
    const int rank = graph.value(node.outputs[0]).info.rank();
    if (rank < 3) continue;
    for (ValueId& id : node.inputs) {
      if (!graph.is_constant(id)) continue;
      const Tensor constant = *graph.value(id).info.constant;
      const int missing = rank - constant.shape().rank();
      if (missing <= 0 || constant.elements() == 1) continue;
      std::vector<int64_t> dims(static_cast<size_t>(missing), 1);
      for (int64_t d : constant.shape().dims()) dims.push_back(d);
      const std::string name = graph.value(id).name + "/ranked";
      id = graph.AddConstant(name, constant.Reshaped(Shape(std::span<const int64_t>(dims))));
      notes.push_back({"BroadcastRank", node.name, "operand " + name});
    }
  }
}

const RegisterPass registered({.name = "BroadcastRank",
                               .summary = "constant operands get the output's rank",
                               .order = 40,
                               .run = Run});

}  // namespace
}  // namespace whimbrel
