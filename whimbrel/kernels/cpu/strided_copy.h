// CopyStrided: boxes of elements moved between strided places, by runs or by tiles.

#pragma once

#include <cstddef>

#include "whimbrel/kernels/ops/move.h"
#include "whimbrel/tensor/tensor.h"

namespace whimbrel {

// As CopyBlock (any order of dims; in-strides may be 0 or negative, out-strides are positive), for
// items of 1, 2, 4 or 8 bytes.
void CopyStrided(const StridedBlock& block, size_t item_bytes, const void* in, void* out);

// The dims of a tensor in the order of memory, and where axis `axis` of the logical shape stands
// there.
Shape MemoryShape(const Tensor& tensor);
int MemoryAxis(const Tensor& tensor, int axis);

}  // namespace whimbrel
