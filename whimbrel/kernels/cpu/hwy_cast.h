// hwy_cast: runs of one element type to another, with the meaning of Cast.

#pragma once

#include <cstdint>

#include "whimbrel/tensor/dtype.h"

namespace whimbrel {

using CastFunction = void (*)(const void* from, void* to, int64_t count);

// Between f32, f64, i32, i64, i8, u8 and bool; nullptr for the others and for equal types.
CastFunction FindCast(DType from, DType to);

}  // namespace whimbrel
