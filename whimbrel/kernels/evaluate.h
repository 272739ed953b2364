// evaluate: one op computed once on host tensors, without a plan: constant folding, the reference
// side of align, samples.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "whimbrel/kernels/kernels.h"

namespace whimbrel {

// Everything one evaluation needs. Inputs: host tensors in plain layout; an undefined Tensor = left
// out.
struct Evaluation {
  const OpSchema* schema = nullptr;
  const Attributes* attributes = nullptr;
  int opset = 0;
  std::span<const Tensor> inputs = {};
  uint64_t constant_inputs = 0;
  size_t outputs = 1;
  std::span<Subgraph* const> subgraphs = {};
  const std::vector<ValueInfo>* inferred =
      nullptr;  // null: inferred here (ops with branches must pass it)
};

// Infers, allocates, computes. Outputs are plain host tensors. Throws when kernel is null.
std::vector<Tensor> Evaluate(const Evaluation& evaluation, const Kernel& kernel, Stream& stream);

// The same with the op's reference kernel; kUnsupported when it has none.
std::vector<Tensor> EvaluateReference(const Evaluation& evaluation, Stream& stream);

// What inference needs to know of a concrete tensor; integer tensors of up to 1024 elements carry
// their value.
ValueInfo InfoOf(const Tensor& tensor);

// A stream that runs everything on the calling thread at once (single-threaded teams of the
// caller).
Stream& InlineStream();

}  // namespace whimbrel
