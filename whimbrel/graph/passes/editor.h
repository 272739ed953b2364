// GraphEditor: what rewriting passes share: who makes and uses a value, replacing a run of nodes by
// one.

#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "whimbrel/graph/compile.h"
#include "whimbrel/graph/ir.h"

namespace whimbrel {

class GraphEditor {
 public:
  GraphEditor(Graph& graph, std::string_view pass, std::vector<PassNote>& notes)
      : graph_(graph), pass_(pass), notes_(notes), uses_(graph) {}
  ~GraphEditor() { Finish(); }
  GraphEditor(const GraphEditor&) = delete;
  GraphEditor& operator=(const GraphEditor&) = delete;

  Graph& graph() { return graph_; }
  int size() const { return static_cast<int>(graph_.nodes.size()); }
  Node& node(int i) { return graph_.nodes[static_cast<size_t>(i)]; }
  bool Is(int i, std::string_view op, std::string_view domain = "") const {
    return i >= 0 && graph_.nodes[static_cast<size_t>(i)].op == op &&
           graph_.nodes[static_cast<size_t>(i)].domain == domain;
  }
  int Producer(ValueId id) const {
    return id == kNoValue ? -1 : uses_.producer[static_cast<size_t>(id)];
  }
  // The node that is the only user of the value (-1: several, none, or it is a graph output).
  int SoleConsumer(ValueId id) const;
  const std::vector<int>& Consumers(ValueId id) const {
    return uses_.consumers[static_cast<size_t>(id)];
  }
  int UseCount(ValueId id) const { return uses_.count[static_cast<size_t>(id)]; }

  const ValueInfo& info(ValueId id) const { return graph_.value(id).info; }
  // Shape and type when fully known.
  std::optional<Shape> ShapeOf(ValueId id) const;
  // Value of a constant of one element, of any float type.
  std::optional<double> ScalarConstant(ValueId id) const;
  // The other input of a two-input node.
  ValueId OtherInput(int n, ValueId id);

  // Puts `fused` where the last of `taken` stands and removes the others. Its origins and note come
  // from them.
  void Replace(const std::vector<int>& taken, Node fused);
  // Makes a node of a registered op at its newest version known to us.
  Node MakeNode(std::string_view op, std::string_view domain, std::vector<ValueId> inputs,
                std::vector<ValueId> outputs, int opset) const;

 private:
  void Finish();
  Graph& graph_;
  std::string pass_;
  std::vector<PassNote>& notes_;
  Uses uses_;
};

// An activation recognised in the graph, in the words of FusedConv's attributes.
struct FoundActivation {
  std::string name;
  float alpha = 0;
  float beta = 0;
  ValueId slope = kNoValue;  // PRelu
  ValueId output = kNoValue;
  std::vector<int> nodes;  // that it takes, in order
};

// Looks at the users of `x` (all of them must belong to the pattern) for an activation of channel
// axis 1 with `channels` (PRelu; `last_axis`: channels lie on the last axis, as after MatMul).
std::optional<FoundActivation> MatchActivation(GraphEditor& editor, ValueId x, int64_t channels,
                                               bool last_axis);

}  // namespace whimbrel
