// Graph bookkeeping: copies, uses, verification, clean-up, printing.

#include "whimbrel/graph/ir.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace whimbrel {

ValueId Graph::AddValue(std::string value_name, ValueInfo info) {
  values.push_back({std::move(value_name), std::move(info)});
  return static_cast<ValueId>(values.size() - 1);
}

ValueId Graph::AddConstant(std::string value_name, Tensor tensor) {
  ValueInfo info;
  info.dtype = tensor.dtype();
  info.dims = ToDims(tensor.shape());
  info.constant = std::make_shared<const Tensor>(std::move(tensor));
  return AddValue(std::move(value_name), std::move(info));
}

ValueId Graph::FindValue(std::string_view value_name) const {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].name == value_name) return static_cast<ValueId>(i);
  }
  return kNoValue;
}

Graph CloneGraph(const Graph& graph) {
  Graph copy = graph;
  for (Node& node : copy.nodes) {
    for (Branch& branch : node.branches)
      branch.graph = std::make_shared<Graph>(CloneGraph(*branch.graph));
  }
  return copy;
}

Uses::Uses(const Graph& graph)
    : producer(graph.values.size(), -1),
      count(graph.values.size(), 0),
      consumers(graph.values.size()) {
  const auto use = [&](ValueId id, int node) {
    if (id == kNoValue) return;
    ++count[static_cast<size_t>(id)];
    auto& list = consumers[static_cast<size_t>(id)];
    if (list.empty() || list.back() != node) list.push_back(node);
  };
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (ValueId id : node.inputs) use(id, static_cast<int>(n));
    for (const Branch& branch : node.branches) {
      for (ValueId id : branch.outer) use(id, static_cast<int>(n));
    }
    for (ValueId id : node.outputs) {
      if (id != kNoValue) producer[static_cast<size_t>(id)] = static_cast<int>(n);
    }
  }
  for (ValueId id : graph.outputs) {
    if (id != kNoValue) ++count[static_cast<size_t>(id)];
  }
}

void VerifyGraph(const Graph& graph, std::string_view after) {
  const auto fail = [&](const std::string& what) {
    throw Error(Code::kInternal, fmt::format("graph {} after {}: {}", graph.name, after, what),
                "switch the pass off with --fusion-switch-file and report this model");
  };
  std::vector<char> made(graph.values.size(), 0);
  for (size_t i = 0; i < graph.values.size(); ++i) made[i] = graph.values[i].info.constant ? 1 : 0;
  for (ValueId id : graph.inputs) made[static_cast<size_t>(id)] = 1;
  for (ValueId id : graph.captures) made[static_cast<size_t>(id)] = 1;
  const auto need = [&](ValueId id, const std::string& who) {
    if (id == kNoValue) return;
    if (id < 0 || static_cast<size_t>(id) >= made.size())
      fail(fmt::format("{} uses value {} of {}", who, id, made.size()));
    if (made[static_cast<size_t>(id)] == 0)
      fail(fmt::format("{} uses {} before it is made", who, graph.value(id).name));
  };
  for (const Node& node : graph.nodes) {
    for (ValueId id : node.inputs) need(id, node.name);
    for (const Branch& branch : node.branches) {
      for (ValueId id : branch.outer) need(id, node.name);
      if (branch.outer.size() != branch.graph->captures.size())
        fail(node.name + ": captures of a branch do not match");
      VerifyGraph(*branch.graph, after);
    }
    for (ValueId id : node.outputs) {
      if (id == kNoValue) continue;
      if (made[static_cast<size_t>(id)] != 0)
        fail(fmt::format("{} makes {} a second time", node.name, graph.value(id).name));
      made[static_cast<size_t>(id)] = 1;
    }
  }
  for (ValueId id : graph.outputs) need(id, "the graph's output list");
}

bool AlwaysMade(const Node& node, size_t i) {
  if (node.schema == nullptr || i >= node.schema->outputs.size()) return false;
  const Formal& formal = node.schema->outputs[i];
  return !formal.optional && !formal.variadic;
}

void RemoveUnused(Graph& graph) {
  std::vector<char> needed(graph.values.size(), 0);
  const auto mark = [&](ValueId id) {
    if (id != kNoValue) needed[static_cast<size_t>(id)] = 1;
  };
  for (ValueId id : graph.outputs) mark(id);
  std::vector<char> keep(graph.nodes.size(), 0);
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    Node& node = graph.nodes[n];
    for (ValueId id : node.outputs) {
      if (id != kNoValue && needed[static_cast<size_t>(id)] != 0) keep[n] = 1;
    }
    if (keep[n] == 0) continue;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (AlwaysMade(node, i)) mark(node.outputs[i]);
    }
    for (ValueId id : node.inputs) mark(id);
    for (Branch& branch : node.branches) {
      RemoveUnused(*branch.graph);
      // A capture that the branch no longer uses is no longer handed in.
      const Uses inside(*branch.graph);
      std::vector<ValueId> outer;
      std::vector<ValueId> inner;
      for (size_t i = 0; i < branch.outer.size(); ++i) {
        const ValueId id = branch.graph->captures[i];
        if (inside.count[static_cast<size_t>(id)] == 0) continue;
        outer.push_back(branch.outer[i]);
        inner.push_back(id);
      }
      branch.outer = std::move(outer);
      branch.graph->captures = std::move(inner);
      for (ValueId id : branch.outer) mark(id);
    }
  }
  for (ValueId id : graph.inputs) mark(id);
  for (ValueId id : graph.captures) mark(id);

  std::vector<ValueId> renumber(graph.values.size(), kNoValue);
  std::vector<Value> values;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (needed[i] == 0) continue;
    renumber[i] = static_cast<ValueId>(values.size());
    values.push_back(std::move(graph.values[i]));
  }
  graph.values = std::move(values);
  const auto map = [&](std::vector<ValueId>& ids) {
    for (ValueId& id : ids) id = id == kNoValue ? kNoValue : renumber[static_cast<size_t>(id)];
  };
  std::vector<Node> nodes;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (keep[n] != 0) nodes.push_back(std::move(graph.nodes[n]));
  }
  graph.nodes = std::move(nodes);
  for (Node& node : graph.nodes) {
    map(node.inputs);
    map(node.outputs);
    for (Branch& branch : node.branches) map(branch.outer);
  }
  map(graph.inputs);
  map(graph.outputs);
  map(graph.captures);
}

namespace {

void AppendText(const Graph& graph, const std::string& indent, std::string& text) {
  const auto describe = [&](ValueId id) {
    if (id == kNoValue) return std::string("-");
    const Value& v = graph.value(id);
    return fmt::format("{}{}:{}{}", v.info.constant ? "const " : "", v.name,
                       DTypeName(v.info.dtype), v.info.dims ? ToString(*v.info.dims) : "[...]");
  };
  const auto list = [&](const std::vector<ValueId>& ids) {
    std::string out;
    for (ValueId id : ids) out += (out.empty() ? "" : ", ") + describe(id);
    return out;
  };
  text += fmt::format("{}in  {}\n", indent, list(graph.inputs));
  for (const Node& node : graph.nodes) {
    text += fmt::format("{}{} = {}{}({}) \"{}\"\n", indent, list(node.outputs),
                        node.domain.empty() ? "" : node.domain + ".", node.op, list(node.inputs),
                        node.name);
    for (const Branch& branch : node.branches) {
      text += fmt::format("{}  {} captures {}\n", indent, branch.attribute, list(branch.outer));
      AppendText(*branch.graph, indent + "    ", text);
    }
  }
  text += fmt::format("{}out {}\n", indent, list(graph.outputs));
}

}  // namespace

std::string ToText(const Graph& graph) {
  std::string text;
  AppendText(graph, "", text);
  return text;
}

}  // namespace whimbrel
