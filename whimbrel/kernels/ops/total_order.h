// total_order: comparing elements so that sorting is defined: NaN is equal to NaN and above all.

#pragma once

#include <cmath>
#include <type_traits>

#include "whimbrel/kernels/reference.h"

namespace whimbrel {

// -1, 0 or 1 as a is below, equal to or above b; both zeros are equal.
template <typename T>
int CompareTotal(T a, T b) {
  const auto x = Widen(a);
  const auto y = Widen(b);
  if constexpr (std::is_floating_point_v<WideOf<T>>) {
    if (std::isnan(x) || std::isnan(y)) {
      return static_cast<int>(std::isnan(x)) - static_cast<int>(std::isnan(y));
    }
  }
  return static_cast<int>(x > y) - static_cast<int>(x < y);
}

}  // namespace whimbrel
