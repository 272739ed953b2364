// Running a plan: bound memory, prepared kernels, data-dependent steps, branches.

#include "whimbrel/graph/executable.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include "whimbrel/base/log.h"
#include "whimbrel/base/threads.h"
#include "whimbrel/graph/branch_runner.h"
#include "whimbrel/kernels/evaluate.h"

namespace whimbrel {
namespace {

// A plan that one thread finishes in this time runs on one: a second thread could save half of it
// at most, and waking it takes up to 50 us.
constexpr double kAloneSeconds = 120e-6;
// What one core does, roughly, for that estimate.
constexpr double kFlopsPerSecond = 100e9;
constexpr double kBytesPerSecond = 20e9;

// While it lives, the calling thread's team is itself only (when `alone`) or what it was.
class TeamOfOne {
 public:
  explicit TeamOfOne(bool alone) : before_(alone ? compute_threads() : 1) {
    if (before_ != 1) SetComputeThreads(1);
  }
  ~TeamOfOne() {
    if (before_ != 1) SetComputeThreads(before_);
  }
  TeamOfOne(const TeamOfOne&) = delete;
  TeamOfOne& operator=(const TeamOfOne&) = delete;

 private:
  int before_;
};

}  // namespace

struct Executable::StepState {
  std::vector<const Tensor*> in;
  std::vector<Tensor*> out;
  OpCall call;
  std::unique_ptr<KernelState> kernel_state;
  size_t workspace_bytes = 0;
  std::vector<std::unique_ptr<BranchRunner>> branches;
  std::vector<Subgraph*> branch_pointers;
};

Executable::Executable(std::shared_ptr<const Graph> graph, std::shared_ptr<Device> device,
                       const ExecutableOptions& options)
    : graph_(std::move(graph)),
      device_(std::move(device)),
      options_(options),
      plan_(MakePlan(*graph_, {.device = device_->info().kind,
                               .alignment = device_->info().alignment_bytes,
                               .only_reference = options.only_reference})) {
  const auto book = [&](size_t bytes, std::string_view what) {
    try {
      return Buffer::Allocate(device_, bytes);
    } catch (const Error& e) {
      throw e.WithContext(fmt::format("{} of {} bytes", what, bytes));
    }
  };
  arena_ = book(plan_.memory.arena_bytes, "arena");
  aliases_.resize(plan_.slots.size());
  for (size_t i = 0; i < plan_.slots.size(); ++i) {
    PlanSlot& slot = plan_.slots[i];
    aliases_[static_cast<size_t>(slot.root)].push_back(static_cast<int>(i));
    if (slot.kind == SlotKind::kArena) slot.tensor.Bind(arena_->data() + slot.offset);
  }
  advised_.assign(plan_.inputs.size(), false);
  MakeBranches();
  alone_ = estimated_seconds_ < kAloneSeconds;
  PrepareSteps();
  workspace_ = book(workspace_bytes_, "workspace");
}

std::unique_ptr<Executable> Executable::Make(Stream& stream, std::shared_ptr<const Graph> graph,
                                             std::shared_ptr<Device> device,
                                             const ExecutableOptions& options) {
  std::unique_ptr<Executable> made;
  stream.Run(
      [&] { made = std::make_unique<Executable>(std::move(graph), std::move(device), options); });
  return made;
}

void Executable::MakeBranches() {
  for (PlanStep& step : plan_.steps) {
    auto state = std::make_unique<StepState>();
    estimated_seconds_ +=
        std::max(step.cost.flops / kFlopsPerSecond, step.cost.bytes / kBytesPerSecond);
    if (step.node >= 0) {
      const Node& node = graph_->nodes[static_cast<size_t>(step.node)];
      // then_branch first, whatever the order in the file.
      for (size_t b = 0; b < node.branches.size(); ++b) {
        std::unique_ptr<BranchRunner> runner;
        if (step.schema->name == "Loop") {
          runner = std::make_unique<LoopRunner>(*this, step, b);
        } else {
          runner = std::make_unique<BranchRunner>(*this, step, b);
        }
        if (node.branches[b].refused.empty()) {
          try {
            runner->executable =
                std::make_unique<Executable>(node.branches[b].graph, device_, options_);
            estimated_seconds_ += runner->executable->estimated_seconds_;
          } catch (const Error& e) {
            if (e.code() != Code::kUnsupported && e.code() != Code::kInvalidData) throw;
            runner->refused = e.what();
          }
        } else {
          runner->refused = node.branches[b].refused;
        }
        const bool first = node.branches[b].attribute == "then_branch";
        state->branch_pointers.insert(
            first ? state->branch_pointers.begin() : state->branch_pointers.end(), runner.get());
        state->branches.push_back(std::move(runner));
      }
    }
    states_.push_back(std::move(state));
  }
}

void Executable::PrepareSteps() {
  const TeamOfOne team(alone_);
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    PlanStep& step = plan_.steps[s];
    StepState& state = *states_[s];
    for (int i : step.inputs)
      state.in.push_back(i < 0 ? nullptr : &plan_.slots[static_cast<size_t>(i)].tensor);
    for (int i : step.outputs)
      state.out.push_back(i < 0 ? nullptr : &plan_.slots[static_cast<size_t>(i)].tensor);
    state.call = OpCall{.schema = step.schema,
                        .attributes = step.attributes,
                        .opset = step.opset,
                        .in = state.in,
                        .out = state.out,
                        .constant_inputs = step.constant_inputs,
                        .subgraphs = state.branch_pointers};
    if (step.dynamic) continue;
    try {
      if (step.kernel->prepare != nullptr) state.kernel_state = step.kernel->prepare(state.call);
      state.call.state = state.kernel_state.get();
      state.workspace_bytes =
          step.kernel->workspace == nullptr ? 0 : step.kernel->workspace(state.call);
    } catch (const Error& e) {
      throw e.WithContext(
          fmt::format("node {} ({}), kernel {}", step.name, step.schema->name, step.kernel->name));
    }
    workspace_bytes_ = std::max(workspace_bytes_, state.workspace_bytes);
  }
}

Executable::~Executable() = default;

ExecutableMemory Executable::memory() const {
  ExecutableMemory m;
  m.arena_bytes = plan_.memory.arena_bytes;
  m.workspace_bytes = workspace_bytes_;
  m.constant_bytes = plan_.constant_bytes;
  for (const auto& state : states_) {
    if (state->kernel_state) m.prepared_bytes += state->kernel_state->bytes();
    for (const auto& branch : state->branches) {
      if (!branch->executable) continue;
      const ExecutableMemory inner = branch->executable->memory();
      m.arena_bytes += inner.arena_bytes;
      m.workspace_bytes += inner.workspace_bytes;
      m.constant_bytes += inner.constant_bytes;
      m.prepared_bytes += inner.prepared_bytes;
    }
  }
  return m;
}

void Executable::CheckInput(size_t i, const Tensor& tensor) const {
  const Value& value = graph_->value(graph_->inputs[i]);
  if (!tensor.defined() || !tensor.has_data()) {
    if (tensor.defined() && tensor.elements() == 0) return;
    throw Error(Code::kInvalidArgument, fmt::format("input {} is missing", value.name));
  }
  const Tensor& planned = plan_.slots[static_cast<size_t>(plan_.inputs[i])].tensor;
  // An open shape is whatever comes; the slot keeps that of the last run.
  const bool fixed = value.info.static_shape();
  if (fixed &&
      (planned.dtype() != tensor.dtype() || !(planned.shape() == tensor.shape()))) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("input {}: expected {}{}, got {}{}", value.name, DTypeName(planned.dtype()),
                    ToString(planned.shape()), DTypeName(tensor.dtype()), ToString(tensor.shape())),
        "compile for these shapes (--shape) or convert the input");
  }
  if (tensor.layout() != Layout::kPlain)
    throw Error(Code::kInvalidArgument,
                fmt::format("input {} must be in plain layout", value.name));
}

void Executable::Bind(int slot, const Tensor& tensor) {
  for (int alias : aliases_[static_cast<size_t>(slot)]) {
    PlanSlot& s = plan_.slots[static_cast<size_t>(alias)];
    if (!s.tensor.defined()) {
      s.tensor = Tensor::Described(tensor.dtype(), tensor.shape());
    }
    if (alias == slot) s.tensor.SetShape(tensor.shape());
    s.tensor.Bind(const_cast<void*>(tensor.raw()));
  }
}

void Executable::BindInputs(std::span<const Tensor> inputs) {
  if (inputs.size() != plan_.inputs.size()) {
    throw Error(Code::kInvalidArgument, fmt::format("{} inputs given, the model takes {}",
                                                    inputs.size(), plan_.inputs.size()));
  }
  const size_t alignment = device_->info().alignment_bytes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    CheckInput(i, inputs[i]);
    const auto address = reinterpret_cast<uintptr_t>(inputs[i].raw());
    if (address % alignment == 0 ||
        !plan_.slots[static_cast<size_t>(plan_.inputs[i])].tensor.defined()) {
      Bind(plan_.inputs[i], inputs[i]);
      continue;
    }
    // The device's rule: one copy into the arena, counted, with one line of advice.
    Tensor staged = Tensor::Described(inputs[i].dtype(), inputs[i].shape());
    staged.Bind(arena_->data() + plan_.staging_offsets[i]);
    if (inputs[i].bytes() > 0) std::memcpy(staged.raw(), inputs[i].raw(), inputs[i].bytes());
    device_->CountCopy(CopyKind::kAlignment, inputs[i].bytes());
    if (!advised_[i]) {
      advised_[i] = true;
      advice_.push_back(
          fmt::format("input {}: {} bytes are copied at each run, its address is no multiple of "
                      "{}; allocate it aligned",
                      graph_->value(graph_->inputs[i]).name, inputs[i].bytes(), alignment));
    }
    Bind(plan_.inputs[i], staged);
  }
}

void Executable::BindCaptures(std::span<const Tensor* const> captures) {
  for (size_t i = 0; i < captures.size(); ++i) Bind(plan_.captures[i], *captures[i]);
}

void Executable::Run(Stream& stream, std::span<const Tensor> inputs) {
  BindInputs(inputs);
  if (!LogEnabled(LogLevel::kDebug)) {
    stream.Run([&] { RunAll(stream); });
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  stream.Run([&] { RunAll(stream); });
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  LogLine(LogLevel::kDebug, fmt::format("run {}: {} steps in {:.1f} us on {}", graph_->name,
                                        plan_.steps.size(), took.count(), device_->info().name));
}

void Executable::RunAll(Stream& stream) {
  const TeamOfOne team(alone_);
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    if (observer_ != nullptr) observer_->Before(s);
    RunPlanned(s, stream);
    if (observer_ != nullptr) observer_->After(s);
  }
}

void Executable::RunStep(size_t step, Stream& stream) {
  const TeamOfOne team(alone_);
  RunPlanned(step, stream);
}

void Executable::RunPlanned(size_t step, Stream& stream) {
  if (plan_.steps[step].dynamic) {
    RunDynamic(step, stream);
    return;
  }
  const StepState& state = *states_[step];
  plan_.steps[step].kernel->run(state.call, {workspace_->data(), state.workspace_bytes}, stream);
}

void Executable::RunDynamic(size_t index, Stream& stream) {
  const PlanStep& step = plan_.steps[index];
  StepState& state = *states_[index];
  PoolAllocator allocator(device_);
  try {
    OpCall call = state.call;
    call.allocator = &allocator;
    if (state.branches.empty()) {
      std::vector<ValueInfo> infos;
      for (const Tensor* t : state.in) infos.push_back(t == nullptr ? ValueInfo{} : InfoOf(*t));
      const auto inferred =
          InferOutputs(*step.schema, *step.attributes, step.opset, infos, state.out.size());
      for (size_t i = 0; i < state.out.size(); ++i) {
        if (state.out[i] == nullptr) continue;
        const bool known = inferred[i].static_shape() && inferred[i].dtype != DType::kUndefined;
        if (plan_.slots[static_cast<size_t>(step.outputs[i])].kind == SlotKind::kDynamic) {
          *state.out[i] = Tensor();
          if (known)
            allocator.Allocate(*state.out[i], inferred[i].dtype, ToShape(*inferred[i].dims));
        } else if (known && !(ToShape(*inferred[i].dims) == state.out[i]->shape())) {
          throw Error(Code::kInvalidData,
                      fmt::format("output {} is {}, the plan expects {}", i,
                                  ToString(*inferred[i].dims), ToString(state.out[i]->shape())));
        }
      }
    } else {
      for (size_t i = 0; i < state.out.size(); ++i) {
        if (state.out[i] != nullptr &&
            plan_.slots[static_cast<size_t>(step.outputs[i])].kind == SlotKind::kDynamic)
          *state.out[i] = Tensor();
      }
    }
    const KernelChoice choice = ChooseKernel(call, device_->info().kind, options_.only_reference);
    if (choice.kernel == nullptr) {
      std::string reasons;
      for (const std::string& reason : choice.declined) reasons += "; " + reason;
      throw Error(Code::kUnsupported, "no kernel takes the call" + reasons);
    }
    std::unique_ptr<KernelState> kernel_state;
    if (choice.kernel->prepare != nullptr) kernel_state = choice.kernel->prepare(call);
    call.state = kernel_state.get();
    const size_t bytes = choice.kernel->workspace == nullptr ? 0 : choice.kernel->workspace(call);
    const auto scratch = Buffer::Allocate(device_, bytes);
    choice.kernel->run(call, {scratch->data(), bytes}, stream);
  } catch (const Error& e) {
    throw e.WithContext(fmt::format("node {} ({})", step.name, step.schema->name));
  }
}

const Tensor& Executable::output(size_t i) const {
  return slot_tensor(plan_.outputs.at(i));
}

const Tensor& Executable::slot_tensor(int slot) const {
  return plan_.slots[static_cast<size_t>(slot)].tensor;
}

Executable* Executable::branch(size_t step, size_t b) const {
  const auto& pointers = states_[step]->branch_pointers;
  if (b >= pointers.size()) return nullptr;
  return static_cast<BranchRunner*>(pointers[b])->executable.get();
}

std::vector<Tensor> Executable::RunStepOn(size_t index, std::span<const Tensor> inputs,
                                          Stream& stream) {
  const TeamOfOne team(alone_);
  const PlanStep& step = plan_.steps[index];
  const StepState& state = *states_[index];
  std::vector<Tensor> in;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    if (step.inputs[i] < 0) {
      in.emplace_back();
      continue;
    }
    const PlanSlot& slot = plan_.slots[static_cast<size_t>(step.inputs[i])];
    if (slot.kind == SlotKind::kConstant) {
      in.push_back(slot.tensor);
    } else if (slot.tensor.layout() == Layout::kChannelsLast &&
               inputs[i].layout() == Layout::kPlain && inputs[i].shape().rank() >= 3) {
      const Tensor room = Tensor::Host(inputs[i].dtype(), inputs[i].shape());
      Tensor converted = room.WithLayout(inputs[i].shape(), Layout::kChannelsLast);
      ConvertLayout(inputs[i], converted);
      in.push_back(std::move(converted));
    } else {
      in.push_back(inputs[i]);
    }
  }
  if (!state.branches.empty()) {
    auto* const loop = dynamic_cast<LoopRunner*>(state.branches[0].get());
    if (loop == nullptr)
      throw Error(
          Code::kInternal,
          fmt::format("node {}: a step with branches cannot run on other inputs", step.name));
    std::vector<Tensor> outs(step.outputs.size());
    std::vector<Tensor*> out_pointers;
    for (Tensor& t : outs) out_pointers.push_back(&t);
    loop->RunOn(in, stream, out_pointers);
    return outs;
  }
  if (step.dynamic) {
    Evaluation evaluation{.schema = step.schema,
                          .attributes = step.attributes,
                          .opset = step.opset,
                          .inputs = in,
                          .outputs = step.outputs.size()};
    std::vector<const Tensor*> pointers;
    for (const Tensor& t : in) pointers.push_back(t.defined() ? &t : nullptr);
    std::vector<Tensor> outs(step.outputs.size());
    std::vector<Tensor*> out_pointers;
    for (Tensor& t : outs) out_pointers.push_back(&t);
    OpCall call = state.call;
    call.in = pointers;
    call.out = out_pointers;
    const KernelChoice choice = ChooseKernel(call, device_->info().kind, options_.only_reference);
    if (choice.kernel == nullptr)
      throw Error(Code::kUnsupported, fmt::format("node {}: no kernel takes the call", step.name));
    return Evaluate(evaluation, *choice.kernel, stream);
  }
  std::vector<const Tensor*> in_pointers;
  for (const Tensor& t : in) in_pointers.push_back(t.defined() ? &t : nullptr);
  std::vector<Tensor> out;
  for (int slot : step.outputs) {
    if (slot < 0) {
      out.emplace_back();
      continue;
    }
    const Tensor& planned = plan_.slots[static_cast<size_t>(slot)].tensor;
    out.push_back(Tensor::Host(planned.dtype(), planned.shape())
                      .WithLayout(planned.shape(), planned.layout()));
  }
  std::vector<Tensor*> out_pointers;
  for (Tensor& t : out) out_pointers.push_back(t.defined() ? &t : nullptr);
  OpCall call = state.call;
  call.in = in_pointers;
  call.out = out_pointers;
  step.kernel->run(call, {workspace_->data(), state.workspace_bytes}, stream);
  for (Tensor& t : out) {
    if (t.defined() && t.layout() != Layout::kPlain) t = CopyPlain(t);
  }
  return out;
}

}  // namespace whimbrel
