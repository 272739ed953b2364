// Step functions: one elementwise step over a run of f32 values, vectorised.

#pragma once

#include <cstddef>

#include "whimbrel/kernels/ops/elementwise_chain.h"

namespace whimbrel {

// The right-hand side of a step: `data` with as many values as the run, or nullptr for `scalar`.
struct StepOperand {
  const float* data = nullptr;
  float scalar = 0;
};

// out may be the same memory as in or operand.data, not overlap them otherwise.
using StepFunction = void (*)(const ChainStep& step, const float* in, StepOperand operand,
                              float* out, size_t count);

StepFunction FindStepFunction(StepOp op);

// Rough time of one element against an addition: what a parallel grain is derived from.
int StepWeight(StepOp op);

// Parts of FindStepFunction, two source files: arithmetic, and what needs exp, log, sin.
StepFunction FindArithmeticStep(StepOp op);      // nullptr for the others
StepFunction FindTranscendentalStep(StepOp op);  // nullptr for the others

}  // namespace whimbrel
