// float_convert: runs of f16 and bf16 to f32 and back, vectorised, on the calling thread's team.

#pragma once

#include <cstdint>

#include "whimbrel/tensor/dtype.h"

namespace whimbrel {

// `type` is kFloat (a copy), kFloat16 or kBFloat16. Rounds to nearest even; NaN stays NaN.
void ToFloat(DType type, const void* from, float* to, int64_t count);
void FromFloat(DType type, const float* from, void* to, int64_t count);

}  // namespace whimbrel
