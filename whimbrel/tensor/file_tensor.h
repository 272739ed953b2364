// file_tensor: a tensor on a range of a mapped file; shared by the readers of this folder.

#pragma once

#include <cstddef>
#include <memory>

#include "whimbrel/base/file.h"
#include "whimbrel/tensor/tensor.h"

namespace whimbrel {

// A view of the map where the address suits the element type, else a host copy. The range must lie
// in the file. Bools other than 0 and 1 become 1 (in a copy): reading them as bool would be
// undefined.
Tensor TensorOnFile(const std::shared_ptr<const MappedFile>& file, size_t offset, DType dtype,
                    const Shape& shape);
// Host copy of `bytes` (exactly as many as dtype and shape need), bools made 0 or 1.
Tensor TensorFromBytes(const void* bytes, DType dtype, const Shape& shape);

}  // namespace whimbrel
