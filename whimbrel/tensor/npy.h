// npy: numpy's .npy files (format 1.0 to 3.0, little endian, C or Fortran order in, C order out).

#pragma once

#include <string>

#include "whimbrel/tensor/tensor.h"

namespace whimbrel {

// Memory-maps the file when it is C order and aligned, else copies. kInvalidData names path and
// reason.
Tensor ReadNpy(const std::string& path);
// Plain layout on disk whatever the tensor's layout; bf16 is written as '<u2' words (numpy has no
// bf16).
void WriteNpy(const std::string& path, const Tensor& tensor);

}  // namespace whimbrel
