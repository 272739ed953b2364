// Row functions: plain loops, which the compiler vectorises for each target.

#include "whimbrel/kernels/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "whimbrel/kernels/cpu/hwy_rows_binary.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "whimbrel/kernels/cpu/hwy_rows_binary.h"
#include "whimbrel/kernels/cpu/simd_loop.h"

HWY_BEFORE_NAMESPACE();
namespace whimbrel {
namespace HWY_NAMESPACE {
namespace {

// Types at hand, not function objects: the loops must be compiled for the target as a whole.
template <RowOp op, typename T>
HWY_INLINE auto Apply(T a, T b) {
  if constexpr (op == RowOp::kEqual) {
    return a == b;
  } else if constexpr (op == RowOp::kLess) {
    return a < b;
  } else if constexpr (op == RowOp::kLessOrEqual) {
    return a <= b;
  } else if constexpr (op == RowOp::kAnd) {
    return static_cast<T>(a & b);
  } else if constexpr (op == RowOp::kOr) {
    return static_cast<T>(a | b);
  } else if constexpr (op == RowOp::kXor) {
    return static_cast<T>(a ^ b);
  } else if constexpr (op == RowOp::kAdd) {
    return static_cast<T>(a + b);
  } else if constexpr (op == RowOp::kSub) {
    return static_cast<T>(a - b);
  } else {
    static_assert(op == RowOp::kMul);
    return static_cast<T>(a * b);
  }
}

template <RowOp op, typename T>
void Row(const void* a_data, int64_t a_step, const void* b_data, int64_t b_step, void* y_data,
         int64_t count) {
  using R = decltype(Apply<op, T>(T{}, T{}));
  const auto* a = static_cast<const T*>(a_data);
  const auto* b = static_cast<const T*>(b_data);
  auto* y = static_cast<R*>(y_data);
  if (a_step == 1 && b_step == 1) {
    WHIMBREL_SIMD_LOOP
    for (int64_t i = 0; i < count; ++i) y[i] = Apply<op, T>(a[i], b[i]);
  } else if (a_step == 1 && b_step == 0) {
    const T value = *b;
    WHIMBREL_SIMD_LOOP
    for (int64_t i = 0; i < count; ++i) y[i] = Apply<op, T>(a[i], value);
  } else if (a_step == 0 && b_step == 1) {
    const T value = *a;
    WHIMBREL_SIMD_LOOP
    for (int64_t i = 0; i < count; ++i) y[i] = Apply<op, T>(value, b[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) y[i] = Apply<op, T>(a[i * a_step], b[i * b_step]);
  }
}

// a > b is b < a: half the loops.
template <RowOp op, typename T>
void Swapped(const void* a, int64_t a_step, const void* b, int64_t b_step, void* y, int64_t count) {
  Row<op, T>(b, b_step, a, a_step, y, count);
}

template <typename T>
RowFunction Comparison(RowOp op) {
  switch (op) {
    case RowOp::kEqual:
      return Row<RowOp::kEqual, T>;
    case RowOp::kLess:
      return Row<RowOp::kLess, T>;
    case RowOp::kLessOrEqual:
      return Row<RowOp::kLessOrEqual, T>;
    case RowOp::kGreater:
      return Swapped<RowOp::kLess, T>;
    case RowOp::kGreaterOrEqual:
      return Swapped<RowOp::kLessOrEqual, T>;
    default:
      return nullptr;
  }
}

// U: unsigned, whose overflow is defined.
template <typename U>
RowFunction Arithmetic(RowOp op) {
  switch (op) {
    case RowOp::kAdd:
      return Row<RowOp::kAdd, U>;
    case RowOp::kSub:
      return Row<RowOp::kSub, U>;
    case RowOp::kMul:
      return Row<RowOp::kMul, U>;
    default:
      return nullptr;
  }
}

// Bools as bytes.
RowFunction Logic(RowOp op) {
  switch (op) {
    case RowOp::kAnd:
      return Row<RowOp::kAnd, uint8_t>;
    case RowOp::kOr:
      return Row<RowOp::kOr, uint8_t>;
    case RowOp::kXor:
      return Row<RowOp::kXor, uint8_t>;
    default:
      return Comparison<uint8_t>(op);
  }
}

RowFunction Find(RowOp op, DType type) {
  switch (type) {
    case DType::kFloat:
      return Comparison<float>(op);
    case DType::kInt32: {
      const RowFunction arithmetic = Arithmetic<uint32_t>(op);
      return arithmetic != nullptr ? arithmetic : Comparison<int32_t>(op);
    }
    case DType::kInt64: {
      const RowFunction arithmetic = Arithmetic<uint64_t>(op);
      return arithmetic != nullptr ? arithmetic : Comparison<int64_t>(op);
    }
    case DType::kUint8:
      return Comparison<uint8_t>(op);
    case DType::kBool:
      return Logic(op);
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace whimbrel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace whimbrel {
namespace {

HWY_EXPORT(Find);

}  // namespace

RowFunction FindRowFunction(RowOp op, DType type) {
  SettleHighwayTargets();
  return HWY_DYNAMIC_DISPATCH(Find)(op, type);
}

}  // namespace whimbrel

#endif
