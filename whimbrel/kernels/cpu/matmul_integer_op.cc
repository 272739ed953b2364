// MatMulInteger with constant B as products of 16-bit numbers: any zero points, exact sums.

#include <algorithm>

#include "whimbrel/base/threads.h"
#include "whimbrel/kernels/cpu/hwy_product_i16.h"
#include "whimbrel/kernels/ops/quantized_product.h"

namespace whimbrel {
namespace {

constexpr int64_t kBlock = 32;         // rows that one thread widens and multiplies
constexpr double kTaskMacs = 1 << 20;  // make waking a second thread worth it

class State final : public KernelState {
 public:
  explicit State(PackedColumns columns) : b(std::move(columns)) {}
  size_t bytes() const override { return b.bytes(); }
  PackedColumns b;
};

std::unique_ptr<KernelState> Prepare(const OpCall& call) {
  const Tensor& b = call.x(1);
  const LineParameter zeros(call, 3, b.shape(), false);
  const int64_t depth = b.shape()[-2], cols = b.shape()[-1];
  const auto pack = [&]<typename T>(const T* from) {
    return std::make_unique<State>(PackedColumns(depth, cols, [&](int64_t k, int64_t col) {
      return from[k * cols + col] - static_cast<int>(zeros.At(0, col));
    }));
  };
  return b.dtype() == DType::kInt8 ? pack(b.data<int8_t>()) : pack(b.data<uint8_t>());
}

int64_t RowsOf(const OpCall& call) {
  return call.x(0).elements() / call.x(0).shape()[-1];
}

bool Accepts(const OpCall& call, std::string* why) {
  const Shape& a = call.x(0).shape();
  const Shape& b = call.x(1).shape();
  if (!call.constant(1) || (call.has(3) && !call.constant(3))) {
    *why = "B or its zero point is not constant";
  } else if (b.rank() < 2 || b.Product(0, b.rank() - 2) != 1) {
    *why = "B is not one matrix";
  } else if (call.x(0).elements() == 0 || call.x(1).elements() == 0) {
    *why = "a tensor has no elements";
  } else if (b.rank() > std::max(a.rank(), 2)) {
    *why = "B has more axes than A";
  } else {
    return true;
  }
  return false;
}

size_t Workspace(const OpCall& call) {
  const auto values = RowsOf(call) * EvenDepth(call.x(0).shape()[-1]);
  return static_cast<size_t>(values) * sizeof(int16_t);
}

template <typename T>
void WidenRows(const OpCall& call, int64_t begin, int64_t end, int16_t* to) {
  const Shape& shape = call.x(0).shape();
  const LineParameter zeros(call, 2, shape, true);
  const int64_t depth = shape[-1], even = EvenDepth(depth);
  const int64_t lines = shape.rank() == 1 ? 1 : shape[-2];
  const T* from = call.x(0).data<T>();
  for (int64_t row = begin; row < end; ++row) {
    const auto zero = static_cast<int32_t>(zeros.At(row / lines, row % lines));
    WidenRun(from + row * depth, zero, to + row * even, depth);
    if (even != depth) to[row * even + depth] = 0;
  }
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  const PackedColumns& b = static_cast<const State*>(call.state)->b;
  const int64_t rows = RowsOf(call), even = EvenDepth(b.depth());
  auto* const wide = static_cast<int16_t*>(static_cast<void*>(workspace.data()));
  int32_t* const y = call.y(0).data<int32_t>();
  const auto widen = [&](int64_t begin, int64_t end) {
    (call.x(0).dtype() == DType::kInt8 ? WidenRows<int8_t> : WidenRows<uint8_t>)(call, begin, end,
                                                                                 wide);
  };
  const auto grain = [&](int64_t task_rows, int64_t cols) {
    return static_cast<int64_t>(
        kTaskMacs / (static_cast<double>(task_rows * cols) * static_cast<double>(even)) + 1);
  };
  if (rows <= kBlock) {  // few rows are shared, each thread has some columns
    widen(0, rows);
    ParallelFor(
        b.panels(), grain(rows, (b.cols() + b.panels() - 1) / b.panels()),
        [&](int64_t begin, int64_t end) { b.Multiply(wide, rows, begin, end, y, b.cols()); });
    return;
  }
  ParallelFor((rows + kBlock - 1) / kBlock, grain(kBlock, b.cols()),
              [&](int64_t begin, int64_t end) {
                for (int64_t block = begin; block < end; ++block) {
                  const int64_t first = block * kBlock, last = std::min(rows, first + kBlock);
                  widen(first, last);
                  b.Multiply(wide + first * even, last - first, 0, b.panels(), y + first * b.cols(),
                             b.cols());
                }
              });
}

WHIMBREL_REGISTER(Kernel{.op = "MatMulInteger",
                         .name = "highway",
                         .rank = 50,
                         .accepts = Accepts,
                         .workspace = Workspace,
                         .prepare = Prepare,
                         .run = Run});

}  // namespace
}  // namespace whimbrel
