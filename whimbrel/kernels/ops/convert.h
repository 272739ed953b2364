// convert: what Cast and CastLike share: elements of one type turned into another.

#pragma once

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {

// Output 0 = input 0 in type `dtype`, with the elements that are known.
void InferConversion(InferContext& c, DType dtype);
// Output 0 = input 0 in the type of output 0.
void ConvertReference(const OpCall& call);

}  // namespace whimbrel
