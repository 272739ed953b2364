// Graph: values, nodes in execution order, and the branches that nodes hold.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "whimbrel/kernels/kernels.h"

namespace whimbrel {

using ValueId = int32_t;
constexpr ValueId kNoValue = -1;

struct Graph;

// A branch held by a node. Values of the enclosing graph that the branch uses are listed pairwise:
// outer[i] (a value of the enclosing graph) is inner.captures[i] inside.
struct Branch {
  std::string attribute;  // "then_branch"
  std::shared_ptr<Graph> graph;
  std::vector<ValueId> outer;
  // Why the branch cannot work with the shapes at hand; it is an error only when it is taken.
  std::string refused = {};
};

struct Node {
  std::string name;  // unique in its graph; made from op and output when the model gives none
  std::string op;
  std::string domain;           // "" = ai.onnx
  int opset = 0;                // of the node's domain in its model
  std::vector<ValueId> inputs;  // kNoValue = optional input left out
  std::vector<ValueId> outputs;
  Attributes attributes;  // without the branches
  std::vector<Branch> branches;
  const OpSchema* schema = nullptr;  // nullptr: not known here; scan reports it, compile refuses it
  std::vector<std::string> origins;  // names of the model's nodes that this one stands for
};

// Whether the schema has output i always (neither optional nor variadic): kernels write it without
// asking, so it keeps its memory even when nobody reads it.
bool AlwaysMade(const Node& node, size_t i);

struct Value {
  std::string name;
  ValueInfo info;
};

// Nodes are in an order in which every input is made before its use. Owned by value; weights are
// shared.
struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<ValueId> inputs;  // without initialisers
  std::vector<ValueId> outputs;
  std::vector<ValueId> captures;  // of a branch: values that come from the enclosing graph
  std::map<std::string, int, std::less<>> opsets;  // domain -> version
  int64_t ir_version = 0;
  std::string producer;

  ValueId AddValue(std::string value_name, ValueInfo info = {});
  Value& value(ValueId id) { return values[static_cast<size_t>(id)]; }
  const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
  ValueId AddConstant(std::string value_name, Tensor tensor);
  bool is_constant(ValueId id) const {
    return id != kNoValue && value(id).info.constant != nullptr;
  }
  ValueId FindValue(std::string_view value_name) const;  // kNoValue when absent
};

// A deep copy: branches are copied too, constant tensors are shared.
Graph CloneGraph(const Graph& graph);

// For each value: index of the node that makes it (-1: input, constant or capture) and how often it
// is used by nodes, branches and graph outputs.
struct Uses {
  explicit Uses(const Graph& graph);
  std::vector<int> producer;
  std::vector<int> count;
  std::vector<std::vector<int>> consumers;  // node indices, ascending, once each
};

// Checks order, ids, duplicate makers and branch captures; throws kInternal naming the pass that
// ran before.
void VerifyGraph(const Graph& graph, std::string_view after);

// Drops nodes and values that no output needs; renumbers values.
void RemoveUnused(Graph& graph);

// One line a node: for tests, --verbose and error messages.
std::string ToText(const Graph& graph);

}  // namespace whimbrel
