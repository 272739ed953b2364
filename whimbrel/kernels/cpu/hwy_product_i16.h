// hwy_product_i16: exact int32 sums of products of 16-bit numbers: how 8-bit numbers less their
// zero points are multiplied. |a b| must stay below 2^30.

#pragma once

#include <cstdint>
#include <vector>

namespace whimbrel {

// Rows of the left operand have an even number of values; one of odd depth ends with a 0.
constexpr int64_t EvenDepth(int64_t depth) {
  return depth + depth % 2;
}

// The right operand [depth, cols] in panels of some columns: [panel][depth / 2][column][2].
class PackedColumns {
 public:
  // value(k, col) gives what stands there.
  template <typename Value>
  PackedColumns(int64_t depth, int64_t cols, Value value);

  int64_t depth() const { return depth_; }
  int64_t cols() const { return cols_; }
  int64_t panels() const { return (cols_ + width_ - 1) / width_; }
  size_t bytes() const { return lines_.size() * sizeof(Line); }

  // y[row * y_stride + col] for `rows` rows of a, each EvenDepth(depth), and the columns of
  // panels [begin, end).
  void Multiply(const int16_t* a, int64_t rows, int64_t begin, int64_t end, int32_t* y,
                int64_t y_stride) const;

 private:
  struct alignas(64) Line {
    int16_t values[32];
  };
  static int64_t PanelWidth();
  int16_t* data() { return lines_.front().values; }
  const int16_t* data() const { return lines_.front().values; }

  int64_t depth_, cols_, width_;
  std::vector<Line> lines_;
};

template <typename Value>
PackedColumns::PackedColumns(int64_t depth, int64_t cols, Value value)
    : depth_(depth), cols_(cols), width_(PanelWidth()) {
  const int64_t panel = EvenDepth(depth) * width_;
  lines_.resize(static_cast<size_t>((panels() * panel + 31) / 32));
  for (int64_t col = 0; col < cols; ++col) {
    int16_t* const to = data() + col / width_ * panel + col % width_ * 2;
    for (int64_t k = 0; k < depth; ++k) {
      to[k / 2 * width_ * 2 + k % 2] = static_cast<int16_t>(value(k, col));
    }
  }
}

// to[i] = from[i] - zero. T: int8_t, uint8_t.
template <typename T>
void WidenRun(const T* from, int32_t zero, int16_t* to, int64_t count);
// sums[i] += (x[i] - zero) * w[i]
template <typename T>
void AddProducts(const T* x, int32_t zero, const int16_t* w, int32_t* sums, int64_t count);

// y = saturate(round((sum + bias) * factor) + zero), half to even; the sum wraps, NaN gives the
// lowest.
struct Requantizer {
  const int32_t* bias = nullptr;  // one for each element; null: 0
  const float* factor = nullptr;  // one, or one for each element
  bool each = false;
  int32_t zero = 0;
};
template <typename Q>
void RequantizeRun(const int32_t* sums, const Requantizer& how, Q* y, int64_t count);

}  // namespace whimbrel
