// Node replacement and activation patterns.

#include "whimbrel/graph/passes/editor.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace whimbrel {

int GraphEditor::SoleConsumer(ValueId id) const {
  const auto i = static_cast<size_t>(id);
  return uses_.count[i] == 1 && uses_.consumers[i].size() == 1 ? uses_.consumers[i][0] : -1;
}

std::optional<Shape> GraphEditor::ShapeOf(ValueId id) const {
  if (id == kNoValue || !info(id).static_shape()) return std::nullopt;
  return ToShape(*info(id).dims);
}

std::optional<double> GraphEditor::ScalarConstant(ValueId id) const {
  if (!graph_.is_constant(id)) return std::nullopt;
  const Tensor& t = *info(id).constant;
  if (t.elements() != 1 || !IsFloating(t.dtype())) return std::nullopt;
  return ElementAsDouble(t, 0);
}

ValueId GraphEditor::OtherInput(int n, ValueId id) {
  const Node& nd = node(n);
  if (nd.inputs.size() != 2) return kNoValue;
  return nd.inputs[0] == id ? nd.inputs[1] : nd.inputs[0];
}

void GraphEditor::Replace(const std::vector<int>& taken, Node fused) {
  std::vector<int> sorted = taken;
  std::sort(sorted.begin(), sorted.end());
  const int last = sorted.back();
  std::string names;
  fused.origins.clear();
  for (int i : sorted) {
    for (const std::string& origin : node(i).origins) fused.origins.push_back(origin);
    names += (names.empty() ? "" : ", ") + node(i).name;
  }
  if (fused.name.empty()) fused.name = node(sorted.front()).name;
  notes_.push_back({pass_, fused.name, fmt::format("{} <- {}", fused.op, names)});
  for (int i : sorted) node(i) = Node{};
  node(last) = std::move(fused);
  uses_ = Uses(graph_);
}

Node GraphEditor::MakeNode(std::string_view op, std::string_view domain,
                           std::vector<ValueId> inputs, std::vector<ValueId> outputs,
                           int opset) const {
  Node made;
  made.op = std::string(op);
  made.domain = std::string(domain);
  made.opset = opset;
  made.inputs = std::move(inputs);
  made.outputs = std::move(outputs);
  made.schema = Registry::Get().Find(domain, op, opset);
  WHIMBREL_CHECK(made.schema != nullptr);
  return made;
}

void GraphEditor::Finish() {
  auto& nodes = graph_.nodes;
  nodes.erase(
      std::remove_if(nodes.begin(), nodes.end(), [](const Node& n) { return n.op.empty(); }),
      nodes.end());
}

namespace {

bool Near(double a, double b) {
  return std::fabs(a - b) <= 1e-6 * std::max(1.0, std::fabs(b));
}

// Bounds of a Clip in any of its forms.
std::optional<std::pair<double, double>> ClipBounds(GraphEditor& e, int n) {
  Node& clip = e.node(n);
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  if (clip.opset < 11) {
    low = clip.attributes.Float("min", low);
    high = clip.attributes.Float("max", high);
    return std::pair(low, high);
  }
  for (size_t i = 1; i < clip.inputs.size(); ++i) {
    if (clip.inputs[i] == kNoValue) continue;
    const auto bound = e.ScalarConstant(clip.inputs[i]);
    if (!bound) return std::nullopt;
    (i == 1 ? low : high) = *bound;
  }
  return std::pair(low, high);
}

// x + 3 -> Clip(0, 6) -> {* x, / 6} in either order, or only / 6 (HardSigmoid).
std::optional<FoundActivation> MatchHardSwish(GraphEditor& e, ValueId x, int add) {
  const auto three = e.ScalarConstant(e.OtherInput(add, x));
  if (!three || !Near(*three, 3)) return std::nullopt;
  const int clip = e.SoleConsumer(e.node(add).outputs[0]);
  if (!e.Is(clip, "Clip") || e.node(clip).inputs[0] != e.node(add).outputs[0]) return std::nullopt;
  const auto bounds = ClipBounds(e, clip);
  if (!bounds || !Near(bounds->first, 0) || !Near(bounds->second, 6)) return std::nullopt;

  FoundActivation found;
  found.nodes = {add, clip};
  ValueId value = e.node(clip).outputs[0];
  bool times_x = false;
  bool by_six = false;
  for (int step = 0; step < 2; ++step) {
    const int next = e.SoleConsumer(value);
    if (next < 0) break;
    if (!times_x && e.Is(next, "Mul") && e.OtherInput(next, value) == x) {
      times_x = true;
    } else if (!by_six && e.Is(next, "Div") && e.node(next).inputs[0] == value) {
      const auto c = e.ScalarConstant(e.node(next).inputs[1]);
      if (!c || !Near(*c, 6)) break;
      by_six = true;
    } else if (!by_six && e.Is(next, "Mul")) {
      const auto c = e.ScalarConstant(e.OtherInput(next, value));
      if (!c || !Near(*c, 1.0 / 6)) break;
      by_six = true;
    } else {
      break;
    }
    found.nodes.push_back(next);
    value = e.node(next).outputs[0];
  }
  if (!by_six) return std::nullopt;
  found.output = value;
  const int uses = times_x ? 2 : 1;
  if (e.UseCount(x) != uses) return std::nullopt;
  if (times_x) {
    found.name = "HardSwish";
  } else {
    found.name = "HardSigmoid";
    found.alpha = 1.0f / 6;
    found.beta = 0.5f;
  }
  return found;
}

// x * Sigmoid(x), x * HardSigmoid(x; 1/6, 0.5).
std::optional<FoundActivation> MatchGate(GraphEditor& e, ValueId x, int gate) {
  if (e.UseCount(x) != 2) return std::nullopt;
  const ValueId g = e.node(gate).outputs[0];
  const int mul = e.SoleConsumer(g);
  if (!e.Is(mul, "Mul") || e.OtherInput(mul, g) != x) return std::nullopt;
  FoundActivation found;
  found.nodes = {gate, mul};
  found.output = e.node(mul).outputs[0];
  if (e.Is(gate, "Sigmoid")) {
    found.name = "Swish";
    found.alpha = 1;
    return found;
  }
  const Attributes& a = e.node(gate).attributes;
  if (!Near(a.Float("alpha", 0.2), 1.0 / 6) || !Near(a.Float("beta", 0.5), 0.5))
    return std::nullopt;
  found.name = "HardSwish";
  return found;
}

std::optional<FoundActivation> MatchSingle(GraphEditor& e, ValueId x, int n, int64_t channels,
                                           bool last_axis) {
  FoundActivation found;
  found.nodes = {n};
  found.output = e.node(n).outputs[0];
  const Attributes& a = e.node(n).attributes;
  if (e.Is(n, "Relu")) {
    found.name = "Relu";
  } else if (e.Is(n, "Sigmoid")) {
    found.name = "Sigmoid";
  } else if (e.Is(n, "Tanh")) {
    found.name = "Tanh";
  } else if (e.Is(n, "HardSwish")) {
    found.name = "HardSwish";
  } else if (e.Is(n, "HardSigmoid")) {
    found.name = "HardSigmoid";
    found.alpha = static_cast<float>(a.Float("alpha", 0.2));
    found.beta = static_cast<float>(a.Float("beta", 0.5));
  } else if (e.Is(n, "LeakyRelu")) {
    found.name = "LeakyRelu";
    found.alpha = static_cast<float>(a.Float("alpha", 0.01));
  } else if (e.Is(n, "Clip") && e.node(n).inputs[0] == x) {
    const auto bounds = ClipBounds(e, n);
    // With low above high Clip gives high; the fused forms give low.
    if (!bounds || !(bounds->first <= bounds->second)) return std::nullopt;
    found.name = "Clip";
    found.alpha = static_cast<float>(std::max(bounds->first, -3.4028234663852886e38));
    found.beta = static_cast<float>(std::min(bounds->second, 3.4028234663852886e38));
  } else if (e.Is(n, "PRelu") && e.node(n).inputs[0] == x &&
             e.graph().is_constant(e.node(n).inputs[1])) {
    const ValueId slope = e.node(n).inputs[1];
    const Tensor& t = *e.info(slope).constant;
    if (t.elements() != channels) return std::nullopt;
    // The channel axis of [C, 1, 1...] or [1, C, 1...], or the last axis.
    const int rank = t.shape().rank();
    const int out_rank = e.info(x).rank();
    const int axis = last_axis ? rank - 1 : 1 + rank - out_rank;
    if (axis < 0 || rank == 0 || t.shape()[axis] != channels) return std::nullopt;
    found.name = "PRelu";
    found.slope =
        e.graph().AddConstant(e.graph().value(slope).name + "/flat", t.Reshaped(Shape{channels}));
  } else {
    return std::nullopt;
  }
  return found;
}

}  // namespace

std::optional<FoundActivation> MatchActivation(GraphEditor& e, ValueId x, int64_t channels,
                                               bool last_axis) {
  // A constant of higher rank ([1, 1, 1, 1, 3] + x) gives the result more axes than x has.
  const auto keeps_shape = [&](const FoundActivation& found) {
    return e.ShapeOf(found.output).has_value() && e.ShapeOf(found.output) == e.ShapeOf(x);
  };
  const std::vector<int> consumers = e.Consumers(x);
  for (int n : consumers) {
    if (e.Is(n, "Add")) {
      if (auto found = MatchHardSwish(e, x, n); found && keeps_shape(*found)) return found;
    }
    if (e.Is(n, "Sigmoid") || e.Is(n, "HardSigmoid")) {
      if (auto found = MatchGate(e, x, n); found && keeps_shape(*found)) return found;
    }
  }
  const int only = e.SoleConsumer(x);
  if (only < 0) return std::nullopt;
  auto found = MatchSingle(e, x, only, channels, last_axis);
  return found && keeps_shape(*found) ? found : std::nullopt;
}

}  // namespace whimbrel
