// Kernel choice, layout assignment and memory sharing.

#include "whimbrel/graph/plan.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

namespace whimbrel {
namespace {

// True when both layouts put the elements in the same order.
bool LayoutIsMoot(const Shape& shape) {
  if (shape.rank() < 3) return true;
  return shape[1] == 1 || shape.Product(2, shape.rank()) == 1;
}

class Planner {
 public:
  Planner(const Graph& graph, const PlanOptions& options)
      : graph_(graph), options_(options), uses_(graph) {}

  Plan Make() {
    by_layout_.assign(graph_.values.size(), {-1, -1});
    for (ValueId id : graph_.inputs)
      plan_.inputs.push_back(AddSlot(id, Layout::kPlain, SlotKind::kInput));
    for (ValueId id : graph_.captures)
      plan_.captures.push_back(AddSlot(id, Layout::kPlain, SlotKind::kCapture));
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      try {
        PlanNode(static_cast<int>(n));
      } catch (const Error& e) {
        throw e.WithContext(fmt::format("node {} ({})", graph_.nodes[n].name, graph_.nodes[n].op));
      }
    }
    for (ValueId id : graph_.outputs) plan_.outputs.push_back(SlotFor(id, Layout::kPlain));
    ShareMemory();
    PlaceArena();
    for (const PlanSlot& slot : plan_.slots) {
      if (slot.kind == SlotKind::kConstant) plan_.constant_bytes += slot.tensor.bytes();
    }
    return std::move(plan_);
  }

 private:
  int AddSlot(ValueId id, Layout layout, SlotKind kind) {
    const ValueInfo& info = graph_.value(id).info;
    PlanSlot slot;
    slot.value = id;
    slot.kind = kind;
    if (kind == SlotKind::kConstant) {
      slot.tensor = *info.constant;
    } else if (info.static_shape() && info.dtype != DType::kUndefined) {
      slot.tensor = Tensor::Described(info.dtype, ToShape(*info.dims), layout);
    } else if (kind == SlotKind::kArena) {
      slot.kind = SlotKind::kDynamic;
    }
    slot.root = static_cast<int>(plan_.slots.size());
    plan_.slots.push_back(std::move(slot));
    by_layout_[static_cast<size_t>(id)][static_cast<size_t>(layout)] =
        static_cast<int>(plan_.slots.size() - 1);
    return static_cast<int>(plan_.slots.size() - 1);
  }

  int Existing(ValueId id, Layout layout) const {
    return by_layout_[static_cast<size_t>(id)][static_cast<size_t>(layout)];
  }
  bool HasChannelsLast(ValueId id) const { return Existing(id, Layout::kChannelsLast) >= 0; }

  PlanSlot& slot(int index) { return plan_.slots[static_cast<size_t>(index)]; }

  // The slot of a value in a layout; adds a view or a conversion step when it exists only in the
  // other.
  int SlotFor(ValueId id, Layout layout) {
    const int have = Existing(id, layout);
    if (have >= 0) return have;
    if (graph_.is_constant(id)) {
      const int plain = Existing(id, Layout::kPlain) >= 0
                            ? Existing(id, Layout::kPlain)
                            : AddSlot(id, Layout::kPlain, SlotKind::kConstant);
      if (layout == Layout::kPlain) return plain;
      const Tensor& constant = slot(plain).tensor;
      Tensor converted;
      if (LayoutIsMoot(constant.shape())) {
        converted = constant.WithLayout(constant.shape(), layout);
      } else {
        const Tensor room = Tensor::Host(constant.dtype(), constant.shape());
        converted = room.WithLayout(constant.shape(), layout);
        ConvertLayout(constant, converted);
      }
      const int index = AddSlot(id, layout, SlotKind::kConstant);
      slot(index).tensor = std::move(converted);
      return index;
    }
    const Layout other = layout == Layout::kPlain ? Layout::kChannelsLast : Layout::kPlain;
    const int source = Existing(id, other);
    WHIMBREL_CHECK(source >= 0);
    const int index = AddSlot(id, layout, SlotKind::kArena);
    if (slot(source).kind == SlotKind::kDynamic) {
      // Dynamic values are always plain.
      throw Error(Code::kInternal,
                  fmt::format("value {} of unknown shape asked for in another layout",
                              graph_.value(id).name));
    }
    if (LayoutIsMoot(slot(source).tensor.shape())) {
      MakeAlias(index, source);
      return index;
    }
    PlanStep step;
    step.name = graph_.value(id).name + (layout == Layout::kPlain ? "/plain" : "/channels_last");
    step.schema = Registry::Get().Find("whimbrel", "LayoutConvert", 1);
    static const Attributes none;
    step.attributes = &none;
    step.kernel = Registry::Get().Reference("whimbrel", "LayoutConvert");
    step.inputs = {source};
    step.outputs = {index};
    plan_.steps.push_back(std::move(step));
    return index;
  }

  void MakeAlias(int index, int source) {
    slot(index).root = slot(source).root;
    slot(index).alias = true;
    slot(index).kind = slot(source).kind;
    if (slot(source).kind == SlotKind::kConstant) {
      const Tensor& t = slot(index).tensor;
      slot(index).tensor = slot(source).tensor.WithLayout(t.shape(), t.layout());
    }
  }

  struct Arrangement {
    std::vector<Layout> in;
    Layout out = Layout::kPlain;
  };

  Layout OutputLayout(ValueId id, Layout wanted) const {
    const ValueInfo& info = graph_.value(id).info;
    return wanted == Layout::kChannelsLast && info.rank() >= 3 ? Layout::kChannelsLast
                                                               : Layout::kPlain;
  }

  // The ways in which a kernel's rule would take this node's inputs, best first.
  std::vector<Arrangement> Arrangements(const Node& node, const Kernel& kernel) const {
    Arrangement plain;
    plain.in.assign(node.inputs.size(), Layout::kPlain);
    if (options_.only_reference || kernel.layout == LayoutRule::kPlain || node.inputs.empty())
      return {plain};
    // Split may have lost its first part.
    const auto made = std::find_if(node.outputs.begin(), node.outputs.end(),
                                   [](ValueId id) { return id != kNoValue; });
    const int rank = made == node.outputs.end() ? 0 : graph_.value(*made).info.rank();
    if (rank < 3) return {plain};
    Arrangement last = plain;
    last.out = Layout::kChannelsLast;
    const auto& out_dims = *graph_.value(*made).info.dims;
    bool any = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (id == kNoValue || graph_.value(id).info.rank() != rank) continue;
      if (kernel.layout == LayoutRule::kFollow) {
        last.in[i] = Layout::kChannelsLast;
        any = any || HasChannelsLast(id);
      } else if (i == 0 || (i >= 2 && !graph_.is_constant(id) &&
                            SameDims(*graph_.value(id).info.dims, out_dims))) {
        // Input 1 is the weight: it stays plain even when its dims happen to be those of the
        // output.
        last.in[i] = Layout::kChannelsLast;
        any = true;
      }
    }
    if (kernel.layout == LayoutRule::kChannelsLast) return {last, plain};
    if (any) return {last, plain};
    return {plain};
  }

  static bool SameDims(const Dims& a, const Dims& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                              [](const Dim& x, const Dim& y) { return x.Same(y); });
  }

  Tensor Described(ValueId id, Layout layout) const {
    const ValueInfo& info = graph_.value(id).info;
    if (info.constant && layout == Layout::kPlain) return *info.constant;
    return Tensor::Described(info.dtype, ToShape(*info.dims), layout);
  }

  void PlanNode(int index) {
    const Node& node = graph_.nodes[static_cast<size_t>(index)];
    if (node.schema == nullptr) {
      throw Error(Code::kUnsupported,
                  fmt::format("op {} of domain {} at version {} is not known", node.op,
                              node.domain.empty() ? "ai.onnx" : node.domain, node.opset));
    }
    if (IsDynamic(node)) {
      PlanDynamic(index);
      return;
    }
    if (PlanLayoutTranspose(index)) return;

    PlanStep step = StepOf(index);
    for (const Kernel* kernel : Registry::Get().Kernels(node.domain, node.op, options_.device)) {
      if (options_.only_reference && kernel->rank != 0) continue;
      if (kernel->isa > ActiveIsa()) {
        step.declined.push_back(fmt::format("{}: needs {}, in force is {}", kernel->name,
                                            IsaName(kernel->isa), IsaName(ActiveIsa())));
        continue;
      }
      for (const Arrangement& arrangement : Arrangements(node, *kernel)) {
        std::string why;
        if (!Accepts(node, *kernel, arrangement, step, &why)) {
          step.declined.push_back(
              fmt::format("{}{}: {}", kernel->name,
                          arrangement.out == Layout::kChannelsLast ? " (channels-last)" : "", why));
          continue;
        }
        Commit(node, *kernel, arrangement, std::move(step));
        return;
      }
    }
    std::string types;
    for (ValueId id : node.inputs)
      types += (types.empty() ? "" : ", ") +
               std::string(id == kNoValue ? "-" : DTypeName(graph_.value(id).info.dtype));
    std::string reasons;
    for (const std::string& reason : step.declined) reasons += "; " + reason;
    throw Error(Code::kUnsupported, fmt::format("no kernel on {} takes ({}){}",
                                                DeviceKindName(options_.device), types, reasons));
  }

  bool IsDynamic(const Node& node) const {
    const auto open = [&](ValueId id) {
      return id != kNoValue && !graph_.value(id).info.static_shape();
    };
    return std::any_of(node.inputs.begin(), node.inputs.end(), open) ||
           std::any_of(node.outputs.begin(), node.outputs.end(), open);
  }

  PlanStep StepOf(int index) {
    const Node& node = graph_.nodes[static_cast<size_t>(index)];
    PlanStep step;
    step.node = index;
    step.name = node.name;
    step.schema = node.schema;
    step.attributes = &node.attributes;
    step.opset = node.opset;
    for (size_t i = 0; i < node.inputs.size() && i < 64; ++i) {
      if (graph_.is_constant(node.inputs[i])) step.constant_inputs |= uint64_t{1} << i;
    }
    for (const Branch& branch : node.branches) {
      std::vector<int> slots;
      for (ValueId id : branch.outer) slots.push_back(SlotFor(id, Layout::kPlain));
      step.branch_inputs.push_back(std::move(slots));
    }
    return step;
  }

  void PlanDynamic(int index) {
    const Node& node = graph_.nodes[static_cast<size_t>(index)];
    PlanStep step = StepOf(index);
    step.dynamic = true;
    for (ValueId id : node.inputs)
      step.inputs.push_back(id == kNoValue ? -1 : SlotFor(id, Layout::kPlain));
    // An output of known shape has its place in the arena: later steps may view it or take it in
    // another layout.
    for (ValueId id : node.outputs)
      step.outputs.push_back(id == kNoValue ? -1 : AddSlot(id, Layout::kPlain, SlotKind::kArena));
    plan_.steps.push_back(std::move(step));
  }

  // A Transpose between [N, spatial..., C] and [N, C, spatial...] is the same memory under another
  // tag.
  bool PlanLayoutTranspose(int index) {
    const Node& node = graph_.nodes[static_cast<size_t>(index)];
    if (options_.only_reference || node.op != "Transpose" || !node.domain.empty()) return false;
    const ValueId from = node.inputs[0];
    const ValueId to = node.outputs[0];
    if (graph_.is_constant(from)) return false;
    const auto perm = node.attributes.Ints("perm");
    const auto rank = static_cast<int64_t>(perm.size());
    if (rank < 3) return false;
    bool to_last = perm[0] == 0 && perm[static_cast<size_t>(rank - 1)] == 1;
    bool to_first = perm[0] == 0 && perm[1] == rank - 1;
    for (int64_t d = 1; d + 1 < rank; ++d)
      to_last = to_last && perm[static_cast<size_t>(d)] == d + 1;
    for (int64_t d = 2; d < rank; ++d) to_first = to_first && perm[static_cast<size_t>(d)] == d - 1;
    if (to_last && HasChannelsLast(from)) {
      const int source = Existing(from, Layout::kChannelsLast);
      MakeAlias(AddSlot(to, Layout::kPlain, SlotKind::kArena), source);
      return true;
    }
    if (to_first && Existing(from, Layout::kPlain) >= 0 && WantsChannelsLast(to)) {
      MakeAlias(AddSlot(to, Layout::kChannelsLast, SlotKind::kArena),
                Existing(from, Layout::kPlain));
      return true;
    }
    return false;
  }

  // Some user of the value has a kernel that works channels-last.
  bool WantsChannelsLast(ValueId id) const {
    for (int user : uses_.consumers[static_cast<size_t>(id)]) {
      const Node& node = graph_.nodes[static_cast<size_t>(user)];
      for (const Kernel* kernel : Registry::Get().Kernels(node.domain, node.op, options_.device)) {
        if (kernel->isa <= ActiveIsa() && kernel->layout != LayoutRule::kPlain) return true;
      }
    }
    return false;
  }

  struct DescribedCall {
    std::vector<Tensor> in;
    std::vector<Tensor> out;
    std::vector<const Tensor*> in_pointers;
    std::vector<Tensor*> out_pointers;
    OpCall call;
  };

  void Describe(const Node& node, const Arrangement& arrangement, const PlanStep& step,
                DescribedCall& d) const {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      d.in.push_back(node.inputs[i] == kNoValue ? Tensor()
                                                : Described(node.inputs[i], arrangement.in[i]));
    }
    for (ValueId id : node.outputs)
      d.out.push_back(id == kNoValue ? Tensor() : Described(id, OutputLayout(id, arrangement.out)));
    for (const Tensor& t : d.in) d.in_pointers.push_back(t.defined() ? &t : nullptr);
    for (Tensor& t : d.out) d.out_pointers.push_back(t.defined() ? &t : nullptr);
    d.call = OpCall{.schema = step.schema,
                    .attributes = step.attributes,
                    .opset = step.opset,
                    .in = d.in_pointers,
                    .out = d.out_pointers,
                    .constant_inputs = step.constant_inputs};
  }

  bool Accepts(const Node& node, const Kernel& kernel, const Arrangement& arrangement,
               const PlanStep& step, std::string* why) const {
    if (kernel.accepts == nullptr)
      return arrangement.out == Layout::kPlain || kernel.layout != LayoutRule::kPlain;
    DescribedCall d;
    Describe(node, arrangement, step, d);
    return kernel.accepts(d.call, why);
  }

  void Commit(const Node& node, const Kernel& kernel, const Arrangement& arrangement,
              PlanStep step) {
    step.kernel = &kernel;
    DescribedCall d;
    Describe(node, arrangement, step, d);
    step.cost = CostOf(d.call);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      step.inputs.push_back(
          node.inputs[i] == kNoValue ? -1 : SlotFor(node.inputs[i], arrangement.in[i]));
    }
    for (ValueId id : node.outputs) {
      step.outputs.push_back(
          id == kNoValue ? -1 : AddSlot(id, OutputLayout(id, arrangement.out), SlotKind::kArena));
    }
    if (kernel.view) MakeAlias(step.outputs[0], step.inputs[0]);
    plan_.steps.push_back(std::move(step));
  }

  // Last step that reads each root's memory; outputs of the graph live to the end.
  std::vector<int> LastUses() const {
    std::vector<int> last(plan_.slots.size(), -1);
    const auto touch = [&](int index, int step) {
      if (index >= 0)
        last[static_cast<size_t>(plan_.slots[static_cast<size_t>(index)].root)] = step;
    };
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      for (int i : plan_.steps[s].inputs) touch(i, static_cast<int>(s));
      for (int i : plan_.steps[s].outputs) touch(i, static_cast<int>(s));
      for (const auto& list : plan_.steps[s].branch_inputs) {
        for (int i : list) touch(i, static_cast<int>(s));
      }
    }
    for (int i : plan_.outputs) touch(i, static_cast<int>(plan_.steps.size()));
    return last;
  }

  // Elementwise kernels write over an input that nobody reads afterwards.
  void ShareMemory() {
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      const PlanStep& step = plan_.steps[s];
      if (step.kernel == nullptr || step.kernel->in_place == 0 || step.outputs.empty() ||
          step.outputs[0] < 0)
        continue;
      PlanSlot& out = slot(step.outputs[0]);
      if (out.kind != SlotKind::kArena || out.alias) continue;
      const std::vector<int> last = LastUsesFrom(s);
      for (size_t i = 0; i < step.inputs.size() && i < 64; ++i) {
        if (((step.kernel->in_place >> i) & 1) == 0 || step.inputs[i] < 0) continue;
        const PlanSlot& in = slot(step.inputs[i]);
        const auto root = static_cast<size_t>(in.root);
        if (plan_.slots[root].kind != SlotKind::kArena || last[root] > static_cast<int>(s))
          continue;
        if (in.tensor.bytes() != out.tensor.bytes() || in.tensor.layout() != out.tensor.layout())
          continue;
        if (SharedWithAnotherInput(step, i)) continue;
        const int old = step.outputs[0];
        Redirect(old, in.root);
        last_use_[root] = last_use_[static_cast<size_t>(old)];
        break;
      }
    }
  }

  // Another operand in the same memory may be read after its bytes were written: broadcast, or the
  // data of a convolution whose residual they are too. Only operands that may all be written over
  // may be one slot.
  bool SharedWithAnotherInput(const PlanStep& step, size_t i) {
    for (size_t k = 0; k < step.inputs.size(); ++k) {
      if (k == i || step.inputs[k] < 0 || slot(step.inputs[k]).root != slot(step.inputs[i]).root)
        continue;
      const bool element_by_element = k < 64 && ((step.kernel->in_place >> k) & 1) != 0;
      if (step.inputs[k] != step.inputs[i] || !element_by_element) return true;
    }
    return false;
  }

  const std::vector<int>& LastUsesFrom(size_t /*step*/) {
    if (last_use_.empty()) last_use_ = LastUses();
    return last_use_;
  }

  void Redirect(int from, int root) {
    for (PlanSlot& s : plan_.slots) {
      if (s.root == from) {
        s.root = root;
        s.alias = true;
      }
    }
  }

  void PlaceArena() {
    const std::vector<int> last = LastUses();
    std::vector<int> first(plan_.slots.size(), -1);
    for (size_t s = plan_.steps.size(); s-- > 0;) {
      for (int i : plan_.steps[s].outputs) {
        if (i >= 0) first[static_cast<size_t>(slot(i).root)] = static_cast<int>(s);
      }
    }
    std::vector<MemoryBlock> blocks;
    std::vector<int> owner;
    const int end = static_cast<int>(plan_.steps.size());
    for (size_t i = 0; i < plan_.slots.size(); ++i) {
      const PlanSlot& s = plan_.slots[i];
      if (s.kind != SlotKind::kArena || s.root != static_cast<int>(i)) continue;
      blocks.push_back(
          {s.tensor.bytes(), std::max(first[i], 0), std::max(last[i], std::max(first[i], 0))});
      owner.push_back(static_cast<int>(i));
    }
    const size_t arena_blocks = blocks.size();
    for (int i : plan_.inputs) {
      const size_t bytes = slot(i).tensor.defined() ? slot(i).tensor.bytes() : 0;
      // Staged copies are made before the first step; an input that is an output too lives to the
      // end.
      blocks.push_back({bytes, 0, std::min(std::max(last[static_cast<size_t>(i)], 0), end)});
    }
    plan_.memory = PlanMemory(blocks, options_.alignment);
    for (size_t b = 0; b < arena_blocks; ++b) slot(owner[b]).offset = plan_.memory.offsets[b];
    for (PlanSlot& s : plan_.slots) {
      if (s.kind == SlotKind::kArena) s.offset = slot(s.root).offset;
    }
    for (size_t i = 0; i < plan_.inputs.size(); ++i)
      plan_.staging_offsets.push_back(plan_.memory.offsets[arena_blocks + i]);
  }

  const Graph& graph_;
  const PlanOptions& options_;
  Uses uses_;
  Plan plan_;
  std::vector<std::array<int, 2>> by_layout_;
  std::vector<int> last_use_;
};

}  // namespace

Plan MakePlan(const Graph& graph, const PlanOptions& options) {
  return Planner(graph, options).Make();
}

std::string ToText(const Plan& plan, const Graph& graph) {
  std::string text;
  const auto describe = [&](int index) {
    if (index < 0) return std::string("-");
    const PlanSlot& s = plan.slots[static_cast<size_t>(index)];
    std::string out = graph.value(s.value).name;
    if (s.tensor.defined())
      out += fmt::format(":{}{}{}", DTypeName(s.tensor.dtype()), ToString(s.tensor.shape()),
                         s.tensor.layout() == Layout::kChannelsLast ? "nhwc" : "");
    switch (s.kind) {
      case SlotKind::kConstant:
        return out + " const";
      case SlotKind::kInput:
        return out + " input";
      case SlotKind::kCapture:
        return out + " capture";
      case SlotKind::kArena:
        return out + fmt::format("@{}{}", s.offset, s.alias ? "~" : "");
      case SlotKind::kDynamic:
        return out + " dynamic";
    }
    return out;
  };
  for (const PlanStep& step : plan.steps) {
    std::string in;
    std::string out;
    for (int i : step.inputs) in += (in.empty() ? "" : ", ") + describe(i);
    for (int i : step.outputs) out += (out.empty() ? "" : ", ") + describe(i);
    text += fmt::format("{} [{}] {} -> {}\n", step.schema->name,
                        step.kernel != nullptr ? step.kernel->name : "dynamic", in, out);
  }
  text += fmt::format("arena {} bytes (at least {})\n", plan.memory.arena_bytes,
                      plan.memory.lower_bound_bytes);
  return text;
}

}  // namespace whimbrel
