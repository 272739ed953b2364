// The lock-step run of reference and plan.

#include "whimbrel/migrate/align.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "whimbrel/graph/branch_runner.h"
#include "whimbrel/kernels/evaluate.h"

namespace whimbrel {
namespace {

// Memory that the reference side holds, for the bounded-memory figure.
struct MemoryMeter {
  size_t now = 0;
  size_t peak = 0;
  void Add(const Tensor& t) {
    now += t.defined() ? t.bytes() : 0;
    peak = std::max(peak, now);
  }
  void Drop(const Tensor& t) { now -= t.defined() ? t.bytes() : 0; }
};

// Receives the reference's values as they are made, and is asked what to do with an If.
class ReferenceListener {
 public:
  virtual ~ReferenceListener() = default;
  virtual void Publish(const std::string& name, const Tensor& value) = 0;
  // The listener for the branch taken of node `name`, and the prefix that its values' names get.
  struct BranchListener {
    ReferenceListener* listener = nullptr;
    std::string prefix;
  };
  virtual BranchListener EnterBranch(const std::string& name, bool then_branch,
                                     const Graph& branch) = 0;
  virtual void LeaveBranch(const std::string& name) = 0;
};

// Evaluates a graph node by node with reference kernels and drops values after their last use.
class ReferenceRun {
 public:
  ReferenceRun(const Graph& graph, ReferenceListener* listener, std::string prefix, Stream& stream,
               MemoryMeter& meter)
      : graph_(graph),
        listener_(listener),
        prefix_(std::move(prefix)),
        stream_(stream),
        meter_(meter),
        left_(Uses(graph).count),
        values_(graph.values.size()) {}

  void Set(ValueId id, const Tensor& value) { values_[static_cast<size_t>(id)] = value; }

  std::vector<Tensor> Run() {
    for (const Node& node : graph_.nodes) {
      try {
        RunNode(node);
      } catch (const Error& e) {
        throw e.WithContext(fmt::format("reference of {}{} ({})", prefix_, node.name, node.op));
      }
    }
    std::vector<Tensor> outputs;
    for (ValueId id : graph_.outputs) outputs.push_back(Get(id));
    return outputs;
  }

 private:
  const Tensor& Get(ValueId id) const {
    const Value& value = graph_.value(id);
    return value.info.constant ? *value.info.constant : values_[static_cast<size_t>(id)];
  }

  void RunNode(const Node& node) {
    std::vector<Tensor> outputs;
    if (node.op == "Loop") {
      outputs = RunLoop(node);
    } else if (!node.branches.empty()) {
      outputs = RunIf(node);
    } else {
      std::vector<Tensor> inputs;
      uint64_t constants = 0;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        inputs.push_back(node.inputs[i] == kNoValue ? Tensor() : Get(node.inputs[i]));
        if (graph_.is_constant(node.inputs[i]) && i < 64) constants |= uint64_t{1} << i;
      }
      outputs = EvaluateReference({.schema = node.schema,
                                   .attributes = &node.attributes,
                                   .opset = node.opset,
                                   .inputs = inputs,
                                   .constant_inputs = constants,
                                   .outputs = node.outputs.size()},
                                  stream_);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId id = node.outputs[i];
      if (id == kNoValue) continue;
      values_[static_cast<size_t>(id)] = outputs[i];
      meter_.Add(outputs[i]);
      if (listener_ != nullptr) listener_->Publish(prefix_ + graph_.value(id).name, outputs[i]);
      if (left_[static_cast<size_t>(id)] == 0) Drop(id);
    }
    for (ValueId id : node.inputs) Use(id);
    for (const Branch& branch : node.branches) {
      for (ValueId id : branch.outer) Use(id);
    }
  }

  std::vector<Tensor> RunIf(const Node& node) {
    const bool then_branch = ElementAsDouble(Get(node.inputs.at(0)), 0) != 0;
    const std::string_view wanted = then_branch ? "then_branch" : "else_branch";
    for (const Branch& branch : node.branches) {
      if (branch.attribute != wanted) continue;
      ReferenceListener::BranchListener inside;
      const std::string name = prefix_ + node.name;
      if (listener_ != nullptr) inside = listener_->EnterBranch(name, then_branch, *branch.graph);
      ReferenceRun run(*branch.graph, inside.listener, inside.prefix, stream_, meter_);
      for (size_t i = 0; i < branch.outer.size(); ++i) {
        run.Set(branch.graph->captures[i], Get(branch.outer[i]));
        if (inside.listener != nullptr && inside.listener != listener_)
          inside.listener->Publish(branch.graph->value(branch.graph->captures[i]).name,
                                   Get(branch.outer[i]));
      }
      auto outputs = run.Run();
      if (listener_ != nullptr) listener_->LeaveBranch(name);
      return outputs;
    }
    throw Error(Code::kInvalidData, fmt::format("{} is missing", wanted));
  }

  // Rounds of ONNX's Loop; the plan's Loop is judged as one layer, so nothing inside is published.
  std::vector<Tensor> RunLoop(const Node& node) {
    const Branch& body = node.branches.at(0);
    const auto given = [&](size_t i) {
      return i < node.inputs.size() && node.inputs[i] != kNoValue;
    };
    const int64_t limit = given(0) ? ElementAsInt64(Get(node.inputs[0]), 0) : INT64_MAX;
    bool go_on = !given(1) || ElementAsDouble(Get(node.inputs[1]), 0) != 0;
    std::vector<Tensor> carried;
    for (size_t i = 2; i < node.inputs.size(); ++i) carried.push_back(Get(node.inputs[i]));
    std::vector<std::vector<Tensor>> scanned(body.graph->outputs.size() - 1 - carried.size());
    for (int64_t round = 0; go_on && round < limit; ++round) {
      ReferenceRun run(*body.graph, nullptr, "", stream_, meter_);
      run.Set(body.graph->inputs.at(0), LoopScalar(*body.graph, 0, Tensor::Scalar(round)));
      run.Set(body.graph->inputs.at(1), LoopScalar(*body.graph, 1, Tensor::Scalar(go_on)));
      for (size_t i = 0; i < carried.size(); ++i) run.Set(body.graph->inputs.at(2 + i), carried[i]);
      for (size_t i = 0; i < body.outer.size(); ++i)
        run.Set(body.graph->captures[i], Get(body.outer[i]));
      const std::vector<Tensor> made = run.Run();
      go_on = ElementAsDouble(made[0], 0) != 0;
      for (size_t i = 0; i < carried.size(); ++i) carried[i] = made[1 + i];
      for (size_t k = 0; k < scanned.size(); ++k)
        scanned[k].push_back(made[1 + carried.size() + k]);
    }
    std::vector<Tensor> outputs = carried;
    for (size_t k = 0; k < scanned.size(); ++k)
      outputs.push_back(
          Stack(scanned[k], body.graph->value(body.graph->outputs[1 + carried.size() + k]).info));
    outputs.resize(node.outputs.size());
    return outputs;
  }

  static Tensor Stack(const std::vector<Tensor>& rounds, const ValueInfo& info) {
    std::vector<int64_t> dims{static_cast<int64_t>(rounds.size())};
    if (!rounds.empty()) {
      dims.insert(dims.end(), rounds[0].shape().dims().begin(), rounds[0].shape().dims().end());
    } else if (info.dims) {
      for (const Dim& d : *info.dims) dims.push_back(d.known() ? d.value() : 0);
    }
    Tensor stacked = Tensor::Host(rounds.empty() ? info.dtype : rounds[0].dtype(),
                                  Shape(std::span<const int64_t>(dims)));
    auto* to = static_cast<std::byte*>(stacked.raw());
    for (const Tensor& round : rounds) {
      std::copy_n(static_cast<const std::byte*>(round.raw()), round.bytes(), to);
      to += round.bytes();
    }
    return stacked;
  }

  void Use(ValueId id) {
    if (id == kNoValue || graph_.is_constant(id)) return;
    if (--left_[static_cast<size_t>(id)] == 0) Drop(id);
  }

  void Drop(ValueId id) {
    const bool made_here =
        std::find(graph_.inputs.begin(), graph_.inputs.end(), id) == graph_.inputs.end() &&
        std::find(graph_.captures.begin(), graph_.captures.end(), id) == graph_.captures.end();
    if (made_here) meter_.Drop(values_[static_cast<size_t>(id)]);
    values_[static_cast<size_t>(id)] = Tensor();
  }

  const Graph& graph_;
  ReferenceListener* listener_;
  std::string prefix_;
  Stream& stream_;
  MemoryMeter& meter_;
  std::vector<int> left_;
  std::vector<Tensor> values_;
};

// What all levels of one alignment share.
struct AlignState {
  const AlignOptions& options;
  Stream& stream;
  AlignResult& result;
  MemoryMeter meter;
  size_t total = 0;
};

double LayerTolerance(const AlignTolerance& t, const OpSchema& schema, DType dtype) {
  const double base = schema.matrix_op ? t.matrix : t.elementwise;
  if (dtype == DType::kFloat16) return std::max(base, t.float16);
  if (dtype == DType::kBFloat16) return std::max(base, t.bfloat16);
  return base;
}

// Compare's figures, with the worst element judged by the layer's own rule: |a - b| <= tol * max(1,
// |ref|).
ErrorFigures CompareLayer(const Tensor& value, const Tensor& reference, double tolerance) {
  ErrorFigures f = Compare(value, reference, 0, 1);
  if (std::isinf(f.worst_ratio)) return f;
  f.worst_ratio = 0;
  f.worst_index = -1;
  const Tensor plain = value.layout() == Layout::kPlain ? value : CopyPlain(value);
  DispatchType(reference.dtype(), [&]<typename T>() {
    for (int64_t i = 0; i < f.elements; ++i) {
      const double r = static_cast<double>(reference.data<T>()[i]);
      const double d = std::fabs(static_cast<double>(plain.data<T>()[i]) - r);
      const double ratio = d / (tolerance * std::max(1.0, std::fabs(r)));
      if (ratio > f.worst_ratio) {
        f.worst_ratio = ratio;
        f.worst_index = i;
      }
    }
  });
  return f;
}

ErrorFigures Worse(const ErrorFigures& a, const ErrorFigures& b) {
  ErrorFigures w = a.worst_ratio >= b.worst_ratio ? a : b;
  w.max_abs = std::max(a.max_abs, b.max_abs);
  w.max_rel = std::max(a.max_rel, b.max_rel);
  w.cosine = std::min(a.cosine, b.cosine);
  return w;
}

// One plan in lock-step with the reference of its graph.
class PlanSide final : public ReferenceListener {
 public:
  PlanSide(Executable& executable, std::string path, AlignState& state)
      : executable_(executable), path_(std::move(path)), state_(state) {
    for (const PlanStep& step : executable.steps()) {
      for (int slot : step.inputs) Want(slot);
      for (int slot : step.outputs) Want(slot);
      if (step.node >= 0 && (step.branch_inputs.empty() || step.schema->name == "Loop"))
        ++state_.total;
    }
  }

  void Publish(const std::string& name, const Tensor& value) override {
    const auto it = wanted_.find(name);
    if (it == wanted_.end()) return;
    store_[name] = value;
    state_.meter.Add(value);
    Advance();
  }

  BranchListener EnterBranch(const std::string& name, bool then_branch,
                             const Graph& /*branch*/) override {
    Advance();
    const size_t step = StepNamed(name);
    if (step == executable_.steps().size())
      return {this, name + "/"};  // the compiler took this branch
    if (step != next_)
      throw Error(Code::kInternal, fmt::format("align: step {} waits before {}",
                                               executable_.steps()[next_].name, name));
    Executable* inside = executable_.branch(step, then_branch ? 0 : 1);
    if (inside == nullptr)
      throw Error(Code::kInternal, fmt::format("align: {} has no plan for the branch taken", name));
    captures_.clear();
    const Node& node =
        executable_.graph().nodes[static_cast<size_t>(executable_.steps()[step].node)];
    size_t b = 0;
    while (node.branches[b].attribute != (then_branch ? "then_branch" : "else_branch")) ++b;
    for (int slot : executable_.steps()[step].branch_inputs[b])
      captures_.push_back(&executable_.slot_tensor(slot));
    inside->BindCaptures(captures_);
    inside_ = std::make_unique<PlanSide>(
        *inside, path_ + name + (then_branch ? "/then_branch/" : "/else_branch/"), state_);
    return {inside_.get(), ""};
  }

  void LeaveBranch(const std::string& name) override {
    if (!inside_ || StepNamed(name) != next_) return;  // it was inlined
    inside_->Finish();
    inside_.reset();
    executable_.RunStep(next_, state_.stream);
    Release(executable_.steps()[next_]);
    ++next_;
  }

  // Everything must have been judged: a step that never got its reference is a defect, not a pass.
  void Finish() {
    Advance();
    if (next_ == executable_.steps().size()) return;
    const PlanStep& step = executable_.steps()[next_];
    std::string missing;
    for (const auto* list : {&step.inputs, &step.outputs}) {
      for (int slot : *list) {
        if (slot >= 0 && Judged(slot) && store_.count(NameOf(slot)) == 0)
          missing += " " + NameOf(slot);
      }
    }
    throw Error(Code::kInternal,
                fmt::format("align: step {} has no reference for{}", step.name, missing),
                "switch passes off with --fusion-switch-file to find the one that renamed a value");
  }

 private:
  const std::string& NameOf(int slot) const {
    return executable_.graph()
        .value(executable_.plan().slots[static_cast<size_t>(slot)].value)
        .name;
  }
  bool Judged(int slot) const {
    return executable_.plan().slots[static_cast<size_t>(slot)].kind != SlotKind::kConstant;
  }
  void Want(int slot) {
    if (slot >= 0 && Judged(slot)) ++wanted_[NameOf(slot)];
  }

  size_t StepNamed(const std::string& name) const {
    const auto& steps = executable_.steps();
    for (size_t s = next_; s < steps.size(); ++s) {
      if (steps[s].node >= 0 && steps[s].name == name && !steps[s].branch_inputs.empty()) return s;
    }
    return steps.size();
  }

  bool Ready(const PlanStep& step) const {
    if (!step.branch_inputs.empty() && step.schema->name != "Loop")
      return false;  // waits for EnterBranch
    for (const auto* list : {&step.inputs, &step.outputs}) {
      for (int slot : *list) {
        if (slot >= 0 && Judged(slot) && store_.count(NameOf(slot)) == 0) return false;
      }
    }
    return true;
  }

  void Advance() {
    while (next_ < executable_.steps().size() && Ready(executable_.steps()[next_])) {
      const PlanStep& step = executable_.steps()[next_];
      if (step.node >= 0) {
        Judge(step);
      } else {
        executable_.RunStep(next_, state_.stream);
      }
      Release(step);
      ++next_;
    }
  }

  void Judge(const PlanStep& step) {
    std::vector<Tensor> inputs;
    for (int slot : step.inputs)
      inputs.push_back(slot < 0 || !Judged(slot) ? Tensor() : store_.at(NameOf(slot)));
    const std::vector<Tensor> own = executable_.RunStepOn(next_, inputs, state_.stream);
    executable_.RunStep(next_, state_.stream);

    AlignLayer layer;
    layer.name = path_ + step.name;
    layer.op = step.schema->name;
    layer.kernel = step.kernel != nullptr ? std::string(step.kernel->name) : "at run time";
    layer.origins = executable_.graph().nodes[static_cast<size_t>(step.node)].origins;
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      if (step.outputs[i] < 0) continue;
      const Tensor& reference = store_.at(NameOf(step.outputs[i]));
      if (layer.output.empty()) layer.output = NameOf(step.outputs[i]);
      layer.tolerance = LayerTolerance(state_.options.tolerance, *step.schema, reference.dtype());
      layer.own = Worse(layer.own, CompareLayer(own[i], reference, layer.tolerance));
      layer.chained = Worse(layer.chained, CompareLayer(executable_.slot_tensor(step.outputs[i]),
                                                        reference, layer.tolerance));
    }
    layer.ok = layer.own.worst_ratio <= 1;
    AlignResult& result = state_.result;
    if (!layer.ok) {
      result.pass = false;
      if (result.first_bad_layer.empty()) result.first_bad_layer = layer.name;
    }
    if (state_.options.progress)
      state_.options.progress(result.layers.size() + 1, state_.total, layer.name);
    result.layers.push_back(std::move(layer));
  }

  void Release(const PlanStep& step) {
    for (const auto* list : {&step.inputs, &step.outputs}) {
      for (int slot : *list) {
        if (slot < 0 || !Judged(slot)) continue;
        const std::string& name = NameOf(slot);
        if (--wanted_.at(name) > 0) continue;
        const auto it = store_.find(name);
        if (it == store_.end()) continue;
        state_.meter.Drop(it->second);
        store_.erase(it);
      }
    }
  }

  Executable& executable_;
  std::string path_;
  AlignState& state_;
  std::unordered_map<std::string, int> wanted_;  // name -> steps that still need it
  std::unordered_map<std::string, Tensor> store_;
  size_t next_ = 0;
  std::unique_ptr<PlanSide> inside_;
  std::vector<const Tensor*> captures_;
};

void CheckInputCount(const Graph& graph, const std::vector<Tensor>& inputs) {
  if (inputs.size() == graph.inputs.size()) return;
  throw Error(Code::kInvalidArgument, fmt::format("{} inputs given, the model takes {}",
                                                  inputs.size(), graph.inputs.size()));
}

std::pair<double, double> EndToEndTolerance(const AlignTolerance& t, DType dtype) {
  if (dtype == DType::kFloat16) return {std::max(t.rtol, t.float16), std::max(t.atol, t.float16)};
  if (dtype == DType::kBFloat16)
    return {std::max(t.rtol, t.bfloat16), std::max(t.atol, t.bfloat16)};
  return {t.rtol, t.atol};
}

}  // namespace

std::vector<Tensor> RunReference(const Graph& imported, const std::vector<Tensor>& inputs) {
  CheckInputCount(imported, inputs);
  RequireKnownOps(imported);
  MemoryMeter meter;
  ReferenceRun run(imported, nullptr, "", InlineStream(), meter);
  for (size_t i = 0; i < inputs.size(); ++i) run.Set(imported.inputs[i], inputs[i]);
  return run.Run();
}

AlignResult Align(const Graph& imported, const std::vector<Tensor>& inputs,
                  const AlignOptions& options) {
  CheckInputCount(imported, inputs);
  CompileOptions compile{.shapes = {}, .switches = options.switches};
  for (size_t i = 0; i < inputs.size(); ++i)
    compile.shapes.push_back({imported.value(imported.inputs[i]).name, inputs[i].shape()});
  const CompiledGraph compiled = CompileGraph(imported, compile);
  const auto device = OpenDevice(options.device);
  const auto stream = device->CreateStream({.threads = options.threads});
  const auto made = Executable::Make(*stream, compiled.graph, device);
  Executable& executable = *made;

  AlignResult result;
  result.reference = "reference";
  result.device = device->info().name;
  stream->Run([&] {
    AlignState state{options, InlineStream(), result, {}, 0};
    executable.BindInputs(inputs);
    PlanSide side(executable, "", state);
    ReferenceRun run(imported, &side, "", InlineStream(), state.meter);
    for (size_t i = 0; i < inputs.size(); ++i) {
      run.Set(imported.inputs[i], inputs[i]);
      side.Publish(imported.value(imported.inputs[i]).name, inputs[i]);
    }
    result.reference_outputs = run.Run();
    side.Finish();
    result.peak_bytes = state.meter.peak;
  });
  for (size_t i = 0; i < executable.outputs(); ++i) {
    AlignResult::Output output;
    output.name = imported.value(imported.outputs[i]).name;
    const auto [rtol, atol] =
        EndToEndTolerance(options.tolerance, result.reference_outputs[i].dtype());
    output.figures = Compare(executable.output(i), result.reference_outputs[i], rtol, atol);
    output.ok = output.figures.worst_ratio <= 1;
    result.pass = result.pass && output.ok;
    result.outputs.push_back(std::move(output));
  }
  return result;
}

}  // namespace whimbrel
