// ReduceMiddle: f32 boxes [outer, count, inner] reduced over the middle, vectorised.

#pragma once

#include <cstdint>

namespace whimbrel {

enum class Reduction : uint8_t { kSum, kMean, kMax, kMin };

// y[o, i] = reduction over r of x[o, r, i]; count >= 1. Sums keep their rounding errors apart, so
// that the result is good to about 1e-6 of the largest partial sum. NaN wins in kMax and kMin.
void ReduceMiddle(Reduction reduction, const float* x, int64_t outer, int64_t count, int64_t inner,
                  float* y);

}  // namespace whimbrel
