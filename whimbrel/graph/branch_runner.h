// branch_runner: how the branches of If and the body of Loop are run inside a plan. Internal to the
// executable.

#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "whimbrel/graph/executable.h"

namespace whimbrel {

// Memory for outputs whose shape a step decides: from the device's pool.
class PoolAllocator final : public OutputAllocator {
 public:
  explicit PoolAllocator(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  void Allocate(Tensor& out, DType dtype, const Shape& shape) override;

 private:
  std::shared_ptr<Device> device_;
};

// Round number or condition as the body declares it: a scalar or [1].
Tensor LoopScalar(const Graph& body, size_t input, const Tensor& scalar);

// A branch of If: binds the captures, runs, hands the outputs over.
class Executable::BranchRunner : public Subgraph {
 public:
  BranchRunner(Executable& parent, const PlanStep& step, size_t index)
      : parent_(parent), step_(step), index_(index) {}
  void Run(Stream& stream, std::span<Tensor* const> outputs) override;

  std::unique_ptr<Executable> executable;  // null when refused
  std::string refused;

 protected:
  // Throws what was refused; binds the captures of the enclosing plan.
  void Enter();
  // Copies `from` into an output of the step, which is given memory when its shape was open.
  void HandOver(const Tensor& from, Tensor& output, size_t index) const;

  Executable& parent_;
  const PlanStep& step_;
  size_t index_;
  std::vector<const Tensor*> captures_;
};

// The body of Loop: the rounds themselves (ONNX operator Loop).
class Executable::LoopRunner final : public Executable::BranchRunner {
 public:
  using BranchRunner::BranchRunner;
  void Run(Stream& stream, std::span<Tensor* const> outputs) override;
  // The same on other inputs of the Loop node than the plan's (undefined = left out).
  void RunOn(std::span<const Tensor> inputs, Stream& stream, std::span<Tensor* const> outputs);
};

}  // namespace whimbrel
