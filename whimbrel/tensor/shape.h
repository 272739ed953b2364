// Shape: up to eight concrete dimensions, held inline.

#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace whimbrel {

constexpr int kMaxRank = 8;

// A scalar has rank 0 and one element. Dimensions are >= 0.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);
  // kUnsupported above kMaxRank, kInvalidData below 0.
  explicit Shape(std::span<const int64_t> dims);
  int rank() const { return rank_; }
  // Negative axes count from the end.
  int64_t operator[](int axis) const {
    return dims_[static_cast<size_t>(axis < 0 ? axis + rank_ : axis)];
  }
  void set(int axis, int64_t dim) {
    dims_[static_cast<size_t>(axis < 0 ? axis + rank_ : axis)] = dim;
  }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  // Product of all dims, at most 2^58 (so that bytes fit 63 bits); kInvalidData above.
  // Any 0 gives 0.
  int64_t elements() const { return Product(0, rank_); }
  int64_t Product(int begin, int end) const;      // of dims [begin, end), the same limit
  std::array<int64_t, kMaxRank> Strides() const;  // row-major, in elements
  Shape Permuted(std::span<const int> perm) const;
  bool operator==(const Shape& other) const;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

std::string ToString(const Shape& shape);  // "[1, 3, 48, 192]"
// "1x3x48x192" or "1,3,48,192"; "" is a scalar. kInvalidArgument naming the text.
Shape ParseShape(std::string_view text);

// Numpy broadcasting of two or more shapes; false when they do not fit.
bool BroadcastShapes(const Shape& a, const Shape& b, Shape* out);

// axis in [-rank, rank) to [0, rank); kInvalidArgument naming op otherwise.
int NormalizeAxis(int64_t axis, int rank, std::string_view op);

}  // namespace whimbrel
