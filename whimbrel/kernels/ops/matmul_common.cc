// MatMul geometry and inference.

#include "whimbrel/kernels/ops/matmul_common.h"

#include <algorithm>

#include <fmt/format.h>

namespace whimbrel {
namespace {

// One operand seen as [batch..., rows, cols] after the transpose; `left` says which side a vector
// is on.
struct Operand {
  Dims batch;
  Dim rows, cols;
  bool vector = false;
};

Operand ReadOperand(const Dims& dims, bool transpose, bool left) {
  Operand o;
  if (dims.size() == 1) {
    o.vector = true;
    o.rows = left ? Dim(1) : dims[0];
    o.cols = left ? dims[0] : Dim(1);
    return o;
  }
  o.batch.assign(dims.begin(), dims.end() - 2);
  o.rows = dims[dims.size() - 2];
  o.cols = dims[dims.size() - 1];
  if (transpose) std::swap(o.rows, o.cols);
  return o;
}

[[noreturn]] void FailFit(std::string_view op, const Dims& a, const Dims& b,
                          std::string_view what) {
  throw Error(Code::kInvalidData,
              fmt::format("{}: {} and {}: {}", op, ToString(a), ToString(b), what));
}

struct Product {
  Operand a, b;
  Dims batch;
};

Product Fit(std::string_view op, const Dims& a, const Dims& b, bool transpose_a, bool transpose_b) {
  if (a.empty() || b.empty()) FailFit(op, a, b, "a scalar has no place in a matrix product");
  Product p{ReadOperand(a, transpose_a, true), ReadOperand(b, transpose_b, false), {}};
  if (p.a.cols.known() && p.b.rows.known() && !p.a.cols.Is(p.b.rows.value())) {
    FailFit(
        op, a, b,
        fmt::format("the inner dimensions {} and {} differ", p.a.cols.value(), p.b.rows.value()));
  }
  auto batch = BroadcastDims(p.a.batch, p.b.batch);
  if (!batch) FailFit(op, a, b, "the batch dimensions do not broadcast");
  p.batch = std::move(*batch);
  return p;
}

}  // namespace

double MatMulGeometry::macs() const {
  return static_cast<double>(batch.elements()) * static_cast<double>(rows) *
         static_cast<double>(depth) * static_cast<double>(cols);
}

// Called by kernels at each run: no Dims, which allocate, unless there is an error to word.
MatMulGeometry MakeMatMulGeometry(std::string_view op, const Shape& a, const Shape& b,
                                  bool transpose_a, bool transpose_b) {
  const auto refuse = [&] {
    Fit(op, ToDims(a), ToDims(b), transpose_a, transpose_b);
    throw Error(Code::kInternal, "MatMul: shapes that fit were refused");
  };
  if (a.rank() == 0 || b.rank() == 0) refuse();
  const bool swap_a = transpose_a && a.rank() > 1;
  const bool swap_b = transpose_b && b.rank() > 1;
  MatMulGeometry g;
  g.rows = a.rank() == 1 ? 1 : a[swap_a ? -1 : -2];
  g.depth = a[swap_a ? -2 : -1];
  g.cols = b.rank() == 1 ? 1 : b[swap_b ? -2 : -1];
  const int64_t b_depth = b.rank() == 1 ? b[0] : b[swap_b ? -1 : -2];
  const auto batch_of = [](const Shape& s) {
    return Shape(s.dims().first(static_cast<size_t>(std::max(s.rank() - 2, 0))));
  };
  g.a_batch = batch_of(a);
  g.b_batch = batch_of(b);
  if (g.depth != b_depth || !BroadcastShapes(g.a_batch, g.b_batch, &g.batch)) refuse();
  g.a_row_stride = swap_a ? 1 : g.depth;
  g.a_depth_stride = swap_a ? g.rows : 1;
  g.b_depth_stride = swap_b ? 1 : g.cols;
  g.b_col_stride = swap_b ? g.depth : 1;
  return g;
}

std::optional<Dims> InferMatMulDims(const InferContext& c, bool transpose_a, bool transpose_b) {
  if (!c.in(0).dims || !c.in(1).dims) return std::nullopt;
  const Product p = Fit(c.schema().name, *c.in(0).dims, *c.in(1).dims, transpose_a, transpose_b);
  Dims out = p.batch;
  if (!p.a.vector) out.push_back(p.a.rows);
  if (!p.b.vector) out.push_back(p.b.cols);
  return out;
}

}  // namespace whimbrel
