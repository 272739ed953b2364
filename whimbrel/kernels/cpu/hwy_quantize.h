// hwy_quantize: runs of f32 to 8-bit integers and back, vectorised.

#pragma once

#include <cstdint>

namespace whimbrel {

// The scales and zero points of a run: one for all of it, or one for each element.
template <typename Q>
struct RunScales {
  const float* scale = nullptr;
  const Q* zero = nullptr;  // null: 0
  bool each = false;
};

// y = saturate(round(x / scale) + zero), half to even; NaN gives the lowest. Q: int8_t, uint8_t.
template <typename Q>
void QuantizeRun(const float* x, RunScales<Q> scales, Q* y, int64_t count);
// y = (x - zero) * scale
template <typename Q>
void DequantizeRun(const Q* x, RunScales<Q> scales, float* y, int64_t count);

// Widens [low, high] to hold the run; NaN counts for nothing.
void ExtendRange(const float* x, int64_t count, float& low, float& high);

}  // namespace whimbrel
