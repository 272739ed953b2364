// Tolerance: how far a kernel may be from its reference, by element type; the one table of the
// conformance tests.

#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "whimbrel/tensor/tensor.h"

namespace whimbrel {

// An element passes when |got - want| <= limit * max(1, |want|). NaN fits NaN, infinities fit
// themselves. Plain ops: a few roundings of the type. Matrix ops: sums of thousands of products in
// the type's usual accumulator (f32 for the 16-bit types, whose result is then rounded once).
// Integers are exact.
inline double ToleranceOf(DType type, bool matrix_op) {
  switch (type) {
    case DType::kFloat:
      return matrix_op ? 1e-3 : 1e-5;
    case DType::kDouble:
      return matrix_op ? 1e-10 : 1e-12;
    case DType::kFloat16:
      return matrix_op ? 1e-2 : 2e-3;  // half a unit in the last place: 4.9e-4
    case DType::kBFloat16:
      return matrix_op ? 3e-2 : 1.6e-2;  // half a unit in the last place: 3.9e-3
    default:
      return 0;
  }
}

// Empty when `got` fits `want`, else the first misfit in words. Both plain.
inline std::string Misfit(const Tensor& got, const Tensor& want, double limit) {
  if (got.dtype() != want.dtype() || !(got.shape() == want.shape())) {
    return fmt::format("{} {} where {} {} is wanted", DTypeName(got.dtype()), ToString(got.shape()),
                       DTypeName(want.dtype()), ToString(want.shape()));
  }
  if (!IsFloating(want.dtype())) {
    if (BitEqual(got, want)) return "";
    for (int64_t i = 0; i < want.elements(); ++i) {
      const int64_t g = ElementAsInt64(got, i), w = ElementAsInt64(want, i);
      if (g != w) return fmt::format("element {} is {} where {} is wanted", i, g, w);
    }
    return "bytes differ";
  }
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double g = ElementAsDouble(got, i), w = ElementAsDouble(want, i);
    if (std::isnan(w) ? std::isnan(g) : (g == w)) continue;
    if (std::isfinite(w) && std::abs(g - w) <= limit * std::max(1.0, std::abs(w))) continue;
    return fmt::format("element {} of {} is {} where {} is wanted, limit {}", i, want.elements(), g,
                       w, limit);
  }
  return "";
}

}  // namespace whimbrel
