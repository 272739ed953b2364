// quantized: what the ops on 8 and 16 bit numbers share: where scales lie, rounding, zero points.

#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {

constexpr TypeMask kQuantized8 = TypeBit(DType::kInt8) | TypeBit(DType::kUint8);
constexpr TypeMask kQuantized16 = TypeBit(DType::kInt16) | TypeBit(DType::kUint16);

// Which scale goes with which element of x. Elements are rows of `inner` neighbours; row r has the
// scales Of(r), Of(r) + step, ...
struct ScaleLayout {
  int64_t inner = 1;   // elements behind the axis (all of x when there is one scale)
  int64_t length = 1;  // of the axis
  int64_t block = 1;   // elements of the axis that share a scale
  int64_t blocks = 1;  // scales along the axis
  int64_t step = 0;    // 1: each element of a row has its own scale
  bool per_axis = false;

  int64_t Of(int64_t row) const {
    if (per_axis) return row % length;
    return step == 0 ? 0 : (row / length * blocks + row % length / block) * inner;
  }
};

// Of a call with x in input 0 and scales in input 1, as the attributes axis and block_size say.
ScaleLayout ScaleLayoutOf(const OpCall& call);
// Checks axis, block_size, scales (input 1) and zero points (input 2) against x (input 0).
void InferScales(const InferContext& c);

// Fails when input i is known to have other than one element.
void CheckOneElement(const InferContext& c, size_t i);
// The one element of input i; 0 when the input is left out.
double OneElement(const OpCall& call, size_t i);

// round(x), half to even, plus the zero point, kept within Q; NaN gives the lowest.
template <typename Q>
Q Quantize(double x, int64_t zero_point) {
  constexpr double kLowest = std::numeric_limits<Q>::min(),
                   kHighest = std::numeric_limits<Q>::max();
  const double shifted = std::nearbyint(x) + static_cast<double>(zero_point);
  if (!(shifted >= kLowest)) return std::numeric_limits<Q>::min();
  return shifted > kHighest ? std::numeric_limits<Q>::max() : static_cast<Q>(shifted);
}

// The scale and zero point of uint8 numbers that cover [low, high] and 0, as DynamicQuantizeLinear
// has them, and ONNX Runtime where that leaves a division by 0: scale 1.
struct DynamicRange {
  float low = 0, high = 0;
  void Add(float x) {
    if (x < low) low = x;
    if (x > high) high = x;
  }
  float scale() const { return high == low ? 1.0F : (high - low) / 255.0F; }
  uint8_t zero_point() const { return Quantize<uint8_t>(-low / scale(), 0); }
};

// One parameter (zero point or scale) for all lines of a matrix operand, for each line, or for each
// line of each matrix: lines are the rows of A or the columns of B.
class LineParameter {
 public:
  // `points` null or of one element: one for all.
  LineParameter(const OpCall& call, size_t input, const Shape& operand, bool rows);
  double At(int64_t matrix, int64_t line) const;

 private:
  const Tensor* points_ = nullptr;
  double first_ = 0;
  int64_t lines_ = 1;
  bool one_ = true, per_matrix_ = false;
};
// The inference check: input `i` is one element, [lines], or like the operand with 1 for the other
// axis of its matrices.
void InferLineParameter(const InferContext& c, size_t i, size_t operand, bool rows);

}  // namespace whimbrel
