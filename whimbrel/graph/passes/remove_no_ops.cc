// RemoveNoOps: nodes that give their input unchanged are left out: Identity, Cast to the same type,
// Reshape to the same dims, Transpose in order, Concat or Sum of one, Slice of everything.

#include <algorithm>
#include <array>

#include "whimbrel/graph/passes/editor.h"

namespace whimbrel {
namespace {

constexpr std::array<std::string_view, 6> kReshaping{"Reshape",   "Flatten", "Squeeze",
                                                     "Unsqueeze", "Expand",  "Tile"};
constexpr std::array<std::string_view, 5> kVariadic{"Concat", "Sum", "Max", "Min", "Mean"};

template <size_t n>
bool OneOf(const std::array<std::string_view, n>& names, const std::string& op) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

bool InOrder(std::span<const int64_t> perm) {
  for (size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<int64_t>(i)) return false;
  }
  return !perm.empty();
}

bool StepsForward(const Graph& graph, const Node& node) {
  if (node.inputs.size() < 5 || node.inputs[4] == kNoValue) return true;
  if (!graph.is_constant(node.inputs[4])) return false;
  const std::vector<int64_t> steps = IntegerValues(*graph.value(node.inputs[4]).info.constant);
  return std::all_of(steps.begin(), steps.end(), [](int64_t s) { return s == 1; });
}

bool GivesItsInput(const Graph& graph, const Node& node) {
  if (!node.domain.empty() || node.inputs.empty() || node.outputs.size() != 1) return false;
  const ValueInfo& in = graph.value(node.inputs[0]).info;
  const ValueInfo& out = graph.value(node.outputs[0]).info;
  if (in.dtype != out.dtype || in.dtype == DType::kUndefined) return false;
  if (node.op == "Identity" || node.op == "Cast" || node.op == "Dropout") return true;
  if (!in.static_shape() || !out.static_shape() || !(ToShape(*in.dims) == ToShape(*out.dims))) {
    return false;
  }
  if (OneOf(kReshaping, node.op)) return true;
  if (OneOf(kVariadic, node.op)) return node.inputs.size() == 1;
  if (node.op == "Transpose") return InOrder(node.attributes.Ints("perm"));
  return node.op == "Slice" && StepsForward(graph, node);
}

void Run(Graph& graph, std::vector<PassNote>& notes) {
  std::vector<ValueId> stands_for(graph.values.size());
  for (size_t i = 0; i < stands_for.size(); ++i) stands_for[i] = static_cast<ValueId>(i);
  const auto replace = [&](std::vector<ValueId>& ids) {
    for (ValueId& id : ids) {
      if (id != kNoValue) id = stands_for[static_cast<size_t>(id)];
    }
  };
  const auto is_output = [&](ValueId id) {
    return std::find(graph.outputs.begin(), graph.outputs.end(), id) != graph.outputs.end();
  };
  for (Node& node : graph.nodes) {
    replace(node.inputs);
    for (Branch& branch : node.branches) replace(branch.outer);
    if (!GivesItsInput(graph, node) || is_output(node.outputs[0])) continue;
    stands_for[static_cast<size_t>(node.outputs[0])] = node.inputs[0];
    notes.push_back({"RemoveNoOps", node.name, node.op + " gives its input"});
  }
}

const RegisterPass registered({.name = "RemoveNoOps",
                               .summary = "nodes that give their input unchanged are left out",
                               .order = 10,
                               .run = Run});

}  // namespace
}  // namespace whimbrel
