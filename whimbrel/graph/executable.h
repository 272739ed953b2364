// Executable: a plan with its memory on one device, ready to run again and again without
// allocating.

#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "whimbrel/graph/ir.h"
#include "whimbrel/graph/plan.h"

namespace whimbrel {

struct ExecutableOptions {
  bool only_reference = false;
};

struct ExecutableMemory {
  size_t arena_bytes = 0;      // activations, branches included
  size_t workspace_bytes = 0;  // scratch of the hungriest kernel
  size_t constant_bytes = 0;   // weights as the model holds them (mapped or in memory)
  size_t prepared_bytes = 0;   // weights as kernels packed them
};

// Called around each step when set; for profile and tests. Null costs one branch a step.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void Before(size_t step) = 0;
  virtual void After(size_t step) = 0;
};

// Not thread-safe: one run at a time. Several executables may share one graph's constants.
class Executable {
 public:
  // Plans the specialised graph for the device and prepares every kernel. Throws what MakePlan
  // throws, and kOutOfMemory naming arena and workspace sizes. Use Make: kernels are shaped by the
  // team of the thread that prepares them.
  static std::unique_ptr<Executable> Make(Stream& stream, std::shared_ptr<const Graph> graph,
                                          std::shared_ptr<Device> device,
                                          const ExecutableOptions& options = {});
  Executable(std::shared_ptr<const Graph> graph, std::shared_ptr<Device> device,
             const ExecutableOptions& options = {});
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  const Graph& graph() const { return *graph_; }
  const Plan& plan() const { return plan_; }
  const std::vector<PlanStep>& steps() const { return plan_.steps; }
  Device& device() const { return *device_; }
  ExecutableMemory memory() const;

  // Inputs in graph order, plain host tensors of the planned type and shape (checked; the error
  // names input, expected and given). They must stay alive until the stream has passed the run. An
  // input that breaks the device's alignment is copied once (counted as kAlignment). Outputs stay
  // valid until the next run; one that is only a view of an input (Reshape of x) lies in the caller's
  // memory.
  void Run(Stream& stream, std::span<const Tensor> inputs);
  const Tensor& output(size_t i) const;
  size_t outputs() const { return plan_.outputs.size(); }

  // The same, step by step on the calling thread: align compares in between.
  void BindInputs(std::span<const Tensor> inputs);
  void RunStep(size_t step, Stream& stream);
  // The tensor that an output or input slot holds after its step; shape is the actual one.
  const Tensor& slot_tensor(int slot) const;
  // Runs one step on other inputs than the plan's (plain host tensors; undefined for constants and
  // absent ones) and returns its outputs as plain host tensors. Uses the step's prepared state. Not
  // for If.
  std::vector<Tensor> RunStepOn(size_t step, std::span<const Tensor> inputs, Stream& stream);
  // Branch `b` of a step (0 = then, 1 = else); null when the shapes at hand cannot take it.
  Executable* branch(size_t step, size_t b) const;
  // Binds a branch's captures from the enclosing plan; RunStep does it itself.
  void BindCaptures(std::span<const Tensor* const> captures);

  void SetObserver(StepObserver* observer) { observer_ = observer; }
  // Advice lines of the last run ("input x: copied 4096 bytes, its address is no multiple of 64").
  const std::vector<std::string>& advice() const { return advice_; }

 private:
  struct StepState;
  class BranchRunner;
  class LoopRunner;

  void MakeBranches();
  void PrepareSteps();
  void Bind(int slot, const Tensor& tensor);
  void RunAll(Stream& stream);
  void RunPlanned(size_t step, Stream& stream);
  void RunDynamic(size_t step, Stream& stream);
  void CheckInput(size_t i, const Tensor& tensor) const;

  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<Device> device_;
  ExecutableOptions options_;
  Plan plan_;
  std::shared_ptr<Buffer> arena_;
  std::shared_ptr<Buffer> workspace_;
  size_t workspace_bytes_ = 0;
  std::vector<std::unique_ptr<StepState>> states_;
  std::vector<std::vector<int>> aliases_;  // per slot: slots that share its memory, itself first
  double estimated_seconds_ = 0;           // on one thread, branches included
  bool alone_ = false;                     // too little work to wake a second thread
  StepObserver* observer_ = nullptr;
  std::vector<std::string> advice_;
  std::vector<bool> advised_;  // per input: one advice line in the life of the executable
};

}  // namespace whimbrel
