// hwy_rows_binary: comparisons, logic and integer arithmetic over rows of any element type.

#pragma once

#include <cstdint>

#include "whimbrel/tensor/dtype.h"

namespace whimbrel {

enum class RowOp : uint8_t {
  kEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kAnd,
  kOr,
  kXor,
  kAdd,  // integers wrap
  kSub,
  kMul,
};

// y[i] = op(a[i * a_step], b[i * b_step]). y may be the memory of an operand with step 1.
using RowFunction = void (*)(const void* a, int64_t a_step, const void* b, int64_t b_step, void* y,
                             int64_t count);

// Comparisons: f32, i32, i64, u8, bool; logic: bool; arithmetic: i32, i64. nullptr for the others.
RowFunction FindRowFunction(RowOp op, DType type);

}  // namespace whimbrel
