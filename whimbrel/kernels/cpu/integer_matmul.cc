// Rows widened to 16 bits less their zero points, times packed columns.

#include "whimbrel/kernels/cpu/integer_matmul.h"

#include <algorithm>

#include "whimbrel/base/threads.h"
#include "whimbrel/kernels/ops/quantized_product.h"

namespace whimbrel {
namespace {

constexpr int64_t kBlock = 32;         // rows that one thread widens and multiplies
constexpr double kTaskMacs = 1 << 20;  // make waking a second thread worth it

PackedColumns Packed(const OpCall& call, const IntegerMatMulInputs& inputs) {
  const Tensor& b = call.x(inputs.b);
  const LineParameter zeros(call, inputs.b_zero, b.shape(), false);
  const int64_t depth = b.shape()[-2], cols = b.shape()[-1];
  const auto pack = [&]<typename T>(const T* from) {
    return PackedColumns(depth, cols, [&](int64_t k, int64_t col) {
      return from[k * cols + col] - static_cast<int>(zeros.At(0, col));
    });
  };
  return b.dtype() == DType::kInt8 ? pack(b.data<int8_t>()) : pack(b.data<uint8_t>());
}

int64_t RowsOf(const Tensor& a) {
  return a.elements() / a.shape()[-1];
}

}  // namespace

std::string IntegerMatMul::Obstacle(const OpCall& call, const IntegerMatMulInputs& inputs) {
  const Shape& a = call.x(inputs.a).shape();
  const Shape& b = call.x(inputs.b).shape();
  if (!call.constant(inputs.b) || (call.has(inputs.b_zero) && !call.constant(inputs.b_zero))) {
    return "B or its zero point is not constant";
  }
  if (b.rank() < 2 || b.Product(0, b.rank() - 2) != 1) return "B is not one matrix";
  if (call.x(inputs.a).elements() == 0 || call.x(inputs.b).elements() == 0) {
    return "a tensor has no elements";
  }
  if (b.rank() > std::max(a.rank(), 2)) return "B has more axes than A";
  return "";
}

IntegerMatMul::IntegerMatMul(const OpCall& call, const IntegerMatMulInputs& inputs)
    : inputs_(inputs), columns_(Packed(call, inputs)) {}

size_t IntegerMatMul::workspace_bytes(const OpCall& call) const {
  const auto values = RowsOf(call.x(inputs_.a)) * EvenDepth(columns_.depth());
  return static_cast<size_t>((values + 31) / 32 * 32) * sizeof(int16_t);
}

template <typename T>
void IntegerMatMul::WidenRows(const OpCall& call, int64_t begin, int64_t end, int16_t* to) const {
  const Tensor& a = call.x(inputs_.a);
  const LineParameter zeros(call, inputs_.a_zero, a.shape(), true);
  const int64_t depth = columns_.depth(), even = EvenDepth(depth);
  const int64_t lines = a.shape().rank() == 1 ? 1 : a.shape()[-2];
  const T* from = a.data<T>();
  for (int64_t row = begin; row < end; ++row) {
    const auto zero = static_cast<int32_t>(zeros.At(row / lines, row % lines));
    WidenRun(from + row * depth, zero, to + row * even, depth);
    if (even != depth) to[row * even + depth] = 0;
  }
}

void IntegerMatMul::Run(const OpCall& call, std::span<std::byte> workspace, int32_t* sums) const {
  const PackedColumns& b = columns_;
  const int64_t rows = RowsOf(call.x(inputs_.a)), even = EvenDepth(b.depth());
  auto* const wide = static_cast<int16_t*>(static_cast<void*>(workspace.data()));
  const auto widen = [&](int64_t begin, int64_t end) {
    if (call.x(inputs_.a).dtype() == DType::kInt8) {
      WidenRows<int8_t>(call, begin, end, wide);
    } else {
      WidenRows<uint8_t>(call, begin, end, wide);
    }
  };
  const auto grain = [&](int64_t task_rows, int64_t cols) {
    const double macs = static_cast<double>(task_rows * cols) * static_cast<double>(even);
    return static_cast<int64_t>(kTaskMacs / macs) + 1;
  };
  // The smaller side is read again and again, the larger one once.
  const auto wide_bytes = static_cast<size_t>(rows * even) * sizeof(int16_t);
  if (rows <= kBlock || wide_bytes < b.bytes()) {
    ParallelFor(rows, 65536 / even + 1, widen);
    ParallelFor(
        b.panels(), grain(rows, (b.cols() + b.panels() - 1) / b.panels()),
        [&](int64_t begin, int64_t end) { b.Multiply(wide, rows, begin, end, sums, b.cols()); });
    return;
  }
  ParallelFor((rows + kBlock - 1) / kBlock, grain(kBlock, b.cols()),
              [&](int64_t begin, int64_t end) {
                for (int64_t block = begin; block < end; ++block) {
                  const int64_t first = block * kBlock, last = std::min(rows, first + kBlock);
                  widen(first, last);
                  b.Multiply(wide + first * even, last - first, 0, b.panels(),
                             sums + first * b.cols(), b.cols());
                }
              });
}

}  // namespace whimbrel
