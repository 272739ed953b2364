// MatMul: geometry of batched products and the reference that MatMul, Gemm and FusedMatMul share.

#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <type_traits>

#include "whimbrel/kernels/ops/widen.h"
#include "whimbrel/kernels/reference.h"

namespace whimbrel {

// op(A) is [batch..., rows, depth], op(B) [batch..., depth, cols]; strides in elements.
struct MatMulGeometry {
  Shape batch;             // broadcast batch dims
  Shape a_batch, b_batch;  // each operand's own
  int64_t rows = 1, depth = 0, cols = 1;
  int64_t a_row_stride = 0, a_depth_stride = 0;
  int64_t b_depth_stride = 0, b_col_stride = 0;

  double macs() const;
};

// `transpose_*` swaps an operand's last two dims and is nothing for vectors. Vectors are numpy's: a
// row before, a column behind. Data is not read; kInvalidData when the shapes do not fit.
MatMulGeometry MakeMatMulGeometry(std::string_view op, const Shape& a, const Shape& b,
                                  bool transpose_a, bool transpose_b);
// The same on symbolic dims: dims of the product; nullopt when a rank is unknown.
std::optional<Dims> InferMatMulDims(const InferContext& c, bool transpose_a, bool transpose_b);

// Sum type: double for float types, the unsigned type for integers (which wrap).
template <typename T, bool = std::is_integral_v<T>>
struct MatMulSum {
  using type = double;
};
template <typename T>
struct MatMulSum<T, true> {
  using type = std::make_unsigned_t<T>;
};

constexpr int64_t kMatMulTile = 256;  // columns summed at once, at most 2 KiB on the stack

// Calls store(first output index, row within the whole output, first column, sums) tile by tile. T:
// a float or integer type as read (ReadAs).
template <typename T, typename Store>
void MatMulReference(const MatMulGeometry& g, const T* a, const T* b, Store&& store) {
  using Sum = typename MatMulSum<T>::type;
  const int64_t batches = g.batch.elements();
  const int64_t rows = g.cols == 0 ? 0 : batches * g.rows;
  const int64_t a_matrix = g.rows * g.depth, b_matrix = g.depth * g.cols;
  const BroadcastWalk<2> walk(g.batch, {&g.a_batch, &g.b_batch});
  const double row_macs = std::max(1.0, static_cast<double>(g.depth) * static_cast<double>(g.cols));
  ParallelFor(rows, static_cast<int64_t>(32768 / row_macs) + 1, [&](int64_t begin, int64_t end) {
    std::array<Sum, kMatMulTile> sums;
    for (int64_t row = begin; row < end;) {
      const int64_t matrix = row / g.rows;
      const int64_t matrix_end = std::min(end, (matrix + 1) * g.rows);
      std::array<int64_t, 2> at{};
      walk.Run(matrix, matrix + 1,
               [&](int64_t, const std::array<int64_t, 2>& offset) { at = offset; });
      for (; row < matrix_end; ++row) {
        const T* a_row = a + at[0] * a_matrix + row % g.rows * g.a_row_stride;
        for (int64_t first = 0; first < g.cols; first += kMatMulTile) {
          const int64_t columns = std::min(kMatMulTile, g.cols - first);
          const T* b_tile = b + at[1] * b_matrix + first * g.b_col_stride;
          std::fill_n(sums.begin(), columns, Sum{0});
          for (int64_t k = 0; k < g.depth; ++k) {
            const auto left = static_cast<Sum>(a_row[k * g.a_depth_stride]);
            const T* right = b_tile + k * g.b_depth_stride;
            // the product of two narrow unsigned numbers would be a signed int
            for (int64_t j = 0; j < columns; ++j) {
              sums[static_cast<size_t>(j)] += left * static_cast<Sum>(right[j * g.b_col_stride]);
            }
          }
          store(row * g.cols + first, row, first,
                std::span<const Sum>(sums.data(), static_cast<size_t>(columns)));
        }
      }
    }
  });
}

}  // namespace whimbrel
