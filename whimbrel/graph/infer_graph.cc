// Shape and type inference over a whole graph, branches included.

#include "whimbrel/graph/infer_graph.h"

#include <fmt/format.h>

namespace whimbrel {
namespace {

// Hands a node's branches to the op's own infer function.
class NodeInferContext final : public InferContext {
 public:
  NodeInferContext(Graph& graph, Node& node, std::span<const ValueInfo> inputs)
      : InferContext(*node.schema, node.attributes, node.opset, inputs, node.outputs.size()),
        graph_(graph),
        node_(node) {}

  std::vector<ValueInfo> InferSubgraph(std::string_view attribute,
                                       std::span<const ValueInfo> inputs) override {
    for (Branch& branch : node_.branches) {
      if (branch.attribute != attribute) continue;
      Graph& inner = *branch.graph;
      // Refused when the graph was specialised: only the message was kept.
      if (!branch.refused.empty() && inner.outputs.empty())
        return std::vector<ValueInfo>(outputs());
      if (inner.inputs.size() != inputs.size())
        Fail(fmt::format("{} takes {} inputs, {} are given", attribute, inner.inputs.size(),
                         inputs.size()));
      for (size_t i = 0; i < inputs.size(); ++i)
        Describe(inner.value(inner.inputs[i]).info, inputs[i]);
      for (size_t i = 0; i < branch.outer.size(); ++i) {
        inner.value(inner.captures[i]).info = graph_.value(branch.outer[i]).info;
      }
      branch.refused.clear();
      try {
        InferGraph(inner);
      } catch (const Error& e) {
        branch.refused = e.what();
        return std::vector<ValueInfo>(inner.outputs.size());
      }
      std::vector<ValueInfo> out;
      for (ValueId id : inner.outputs) out.push_back(inner.value(id).info);
      return out;
    }
    Fail(fmt::format("attribute {} is missing", attribute));
  }

 private:
  // A body may declare a scalar (the round, the condition of Loop) as [1]; then it computes with
  // [1].
  static void Describe(ValueInfo& declared, const ValueInfo& given) {
    const bool one_element = declared.dims && !declared.dims->empty() && AllKnown(*declared.dims) &&
                             ProductOf(*declared.dims, 0, declared.dims->size()).Is(1);
    const bool keep = one_element && given.dims && given.dims->empty();
    const std::optional<Dims> dims = keep ? declared.dims : given.dims;
    declared = given;
    declared.dims = dims;
  }

  Graph& graph_;
  Node& node_;
};

}  // namespace

Error OfModel(const Error& error) {
  return error.code() == Code::kInvalidArgument
             ? Error(Code::kInvalidData, error.what(), error.hint())
             : error;
}

void InferNode(Graph& graph, Node& node) {
  std::vector<ValueInfo> inputs;
  inputs.reserve(node.inputs.size());
  for (ValueId id : node.inputs)
    inputs.push_back(id == kNoValue ? ValueInfo{} : graph.value(id).info);
  // An input whose type could not be told makes the outputs unknown too: scan still lists the node.
  bool known = node.schema != nullptr;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kNoValue && inputs[i].dtype == DType::kUndefined) known = false;
  }
  if (!known) {
    for (ValueId id : node.outputs) {
      if (id != kNoValue) graph.value(id).info = {};
    }
    return;
  }
  try {
    CheckCall(*node.schema, node.attributes, inputs, node.outputs.size());
    NodeInferContext context(graph, node, inputs);
    node.schema->infer(context);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNoValue)
        graph.value(node.outputs[i]).info = std::move(context.out(i));
    }
  } catch (const Error& e) {
    throw OfModel(e).WithContext(fmt::format("node {} ({})", node.name, node.op));
  }
}

void InferGraph(Graph& graph) {
  for (Node& node : graph.nodes) InferNode(graph, node);
}

}  // namespace whimbrel
