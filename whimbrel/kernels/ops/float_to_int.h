// float_to_int: float to integer, also out of range: what x86, and so ONNX Runtime, gives.

#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

namespace whimbrel {

// The fraction is cut. What the conversion instruction cannot hold becomes its "indefinite" value
// -2^(n-1), n = 32 for targets up to int32_t and 64 for wider ones; narrower targets then keep the
// low bits.
template <typename T>
constexpr T FloatToInt(double x) {
  using Register =
      std::conditional_t<(sizeof(T) < 4 || std::is_same_v<T, int32_t>), int32_t, int64_t>;
  constexpr double kLimit = -static_cast<double>(std::numeric_limits<Register>::min());  // 2^(n-1)
  if constexpr (std::is_same_v<T, uint64_t>) {
    // Values from 2^63 on are converted 2^63 lower and put back; from 2^64 on that gives 0.
    if (x >= kLimit) return x < 2 * kLimit ? static_cast<uint64_t>(x) : 0;
  }
  // Below -2^(n-1) - 1 the cut value no longer fits; NaN fails both comparisons.
  const bool fits = x < kLimit && (sizeof(Register) == 4 ? x > -kLimit - 1 : x >= -kLimit);
  return static_cast<T>(fits ? static_cast<Register>(x) : std::numeric_limits<Register>::min());
}

}  // namespace whimbrel
