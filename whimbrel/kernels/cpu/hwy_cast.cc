// Casts: plain loops, which the compiler vectorises for each target.

#include "whimbrel/kernels/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "whimbrel/kernels/cpu/hwy_cast.cc"
#include <limits>
#include <type_traits>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "whimbrel/kernels/cpu/hwy_cast.h"
#include "whimbrel/kernels/cpu/simd_loop.h"

HWY_BEFORE_NAMESPACE();
namespace whimbrel {
namespace HWY_NAMESPACE {
namespace {

// As FloatToInt of ops/float_to_int.h, computed in F and without a branch.
template <typename To, typename F>
HWY_INLINE To Cut(F x) {
  using Register =
      std::conditional_t<(sizeof(To) < 4 || std::is_same_v<To, int32_t>), int32_t, int64_t>;
  constexpr F kLowest = static_cast<F>(std::numeric_limits<Register>::min());
  // F may be finer than 1 below the least integer, whose fraction is cut
  const bool above = sizeof(F) > sizeof(Register) ? x > kLowest - 1 : x >= kLowest;
  return static_cast<To>(static_cast<Register>(above && x < -kLowest ? x : kLowest));
}

template <typename From, typename To>
void Loop(const void* from_data, void* to_data, int64_t count) {
  const auto* from = static_cast<const From*>(from_data);
  auto* to = static_cast<To*>(to_data);
  WHIMBREL_SIMD_LOOP
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<To, bool>) {
      to[i] = from[i] != 0;
    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
      to[i] = Cut<To>(from[i]);
    } else {
      to[i] = static_cast<To>(from[i]);
    }
  }
}

template <typename From>
CastFunction FindTo(DType to) {
  const auto loop = [&]<typename To>(To) -> CastFunction {
    if constexpr (std::is_same_v<From, To>) {
      return nullptr;
    } else {
      return Loop<From, To>;
    }
  };
  switch (to) {
    case DType::kFloat:
      return loop(float{});
    case DType::kDouble:
      return loop(double{});
    case DType::kInt32:
      return loop(int32_t{});
    case DType::kInt64:
      return loop(int64_t{});
    case DType::kInt8:
      return loop(int8_t{});
    case DType::kUint8:
      return loop(uint8_t{});
    case DType::kBool:
      return loop(bool{});
    default:
      return nullptr;
  }
}

CastFunction Find(DType from, DType to) {
  switch (from) {
    case DType::kFloat:
      return FindTo<float>(to);
    case DType::kDouble:
      return FindTo<double>(to);
    case DType::kInt32:
      return FindTo<int32_t>(to);
    case DType::kInt64:
      return FindTo<int64_t>(to);
    case DType::kInt8:
      return FindTo<int8_t>(to);
    case DType::kUint8:
      return FindTo<uint8_t>(to);
    case DType::kBool:
      return FindTo<bool>(to);
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

CastFunction FindCast(DType from, DType to) {
  SettleHighwayTargets();
  return HWY_DYNAMIC_DISPATCH(Find)(from, to);
}

}  // namespace whimbrel

#endif
