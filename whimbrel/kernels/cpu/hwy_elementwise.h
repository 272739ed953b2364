// ElementwisePlan: how f32 operands of any broadcast shape and layout meet an output, tile by tile.

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "whimbrel/kernels/cpu/hwy_steps.h"
#include "whimbrel/kernels/kernels.h"

namespace whimbrel {

// The output's dims in memory order, neighbours merged where every operand allows it. Plain data:
// may be made on the stack.
struct ElementwisePlan {
  int rank = 1;
  int64_t elements = 0;
  std::array<int64_t, kMaxRank> dims{};
  size_t operands = 0;
  std::array<std::array<int64_t, kMaxRank>, kMaxChainInputs>
      strides{};  // in elements; 0 = broadcast
};

// Operands beyond kMaxChainInputs are a caller's error.
ElementwisePlan PlanElementwise(const Tensor& out, std::span<const Tensor* const> operands);

// One step with its function.
struct BoundStep {
  ChainStep step;
  StepFunction run = nullptr;
};

std::vector<BoundStep> BindSteps(std::span<const ChainStep> steps);
// Elements that make waking a second thread worth it.
int64_t ElementwiseGrain(std::span<const BoundStep> steps);

// out = steps(operands[0], ...). Allocates nothing.
void RunElementwise(const ElementwisePlan& plan, std::span<const BoundStep> steps, int64_t grain,
                    std::span<const float* const> operands, float* out);

// Steps and plan of one planned call; the plan is made anew when shapes or layouts are others than
// planned. Operand i of the steps is call.in[inputs[i]].
class ElementwiseState final : public KernelState {
 public:
  ElementwiseState(std::span<const ChainStep> steps, const OpCall& call,
                   std::span<const size_t> inputs);
  // All inputs, in order.
  ElementwiseState(std::span<const ChainStep> steps, const OpCall& call);
  size_t bytes() const override { return sizeof(*this) + steps_.size() * sizeof(BoundStep); }
  void Run(const OpCall& call) const;

 private:
  struct Key {
    Shape shape;
    Layout layout = Layout::kPlain;
  };

  std::vector<BoundStep> steps_;
  int64_t grain_ = 0;
  std::vector<size_t> inputs_;
  ElementwisePlan plan_;
  std::array<Key, kMaxChainInputs + 1> keys_;  // inputs, then output
};

// What every elementwise kernel of this folder declines: other types than f32, too many inputs.
bool AcceptsElementwise(const OpCall& call, std::string* why);
// `run` of kernels whose state is an ElementwiseState.
void RunElementwiseCall(const OpCall& call, std::span<std::byte> workspace, Stream& stream);

}  // namespace whimbrel
