// Concat, Split, Transpose and Expand of any type by runs and tiles, in either layout.

#include <fmt/format.h>

#include "whimbrel/kernels/cpu/strided_copy.h"
#include "whimbrel/kernels/kernels.h"

namespace whimbrel {
namespace {

void RunConcat(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  Tensor& y = call.y(0);
  const int logical = NormalizeAxis(call.attrs().Int("axis", 0), y.shape().rank(), "Concat");
  if (y.elements() == 0) return;
  const int axis = MemoryAxis(y, logical);
  const Shape shape = MemoryShape(y);
  const int64_t outer = shape.Product(0, axis);
  const int64_t inner = shape.Product(axis + 1, shape.rank());
  StridedBlock block;
  block.rank = 2;
  for (const Tensor* x : call.in) {
    if (x == nullptr) continue;
    const int64_t run = x->shape()[logical] * inner;
    block.dims = {outer, run};
    block.in_strides = {run, 1};
    block.out_strides = {shape[axis] * inner, 1};
    CopyStrided(block, ItemSize(y.dtype()), x->raw(), y.raw());
    block.out_offset += run;
  }
}

// The lengths of the parts are those of the outputs, which inference checked.
bool AcceptsSplit(const OpCall& call, std::string* why) {
  const int axis = NormalizeAxis(call.attrs().Int("axis", 0), call.x(0).shape().rank(), "Split");
  int64_t rows = 0;
  for (const Tensor* y : call.out) {
    if (y == nullptr) {
      *why = "an output is not asked for";
      return false;
    }
    if (y->shape().rank() != call.x(0).shape().rank()) {
      *why = "the lengths of the parts are not known";
      return false;
    }
    rows += y->shape()[axis];
  }
  if (call.has(1) && !call.constant(1)) {
    *why = "the lengths of the parts are not constant";
    return false;
  }
  if (rows != call.x(0).shape()[axis]) {
    *why = fmt::format("the parts have {} rows, the axis {}", rows, call.x(0).shape()[axis]);
    return false;
  }
  return true;
}

void RunSplit(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Tensor& x = call.x(0);
  const int logical = NormalizeAxis(call.attrs().Int("axis", 0), x.shape().rank(), "Split");
  const int axis = MemoryAxis(x, logical);
  const Shape shape = MemoryShape(x);
  const int64_t outer = shape.Product(0, axis);
  const int64_t inner = shape.Product(axis + 1, shape.rank());
  StridedBlock block;
  block.rank = 2;
  for (Tensor* y : call.out) {
    const int64_t run = y->shape()[logical] * inner;
    block.dims = {outer, run};
    block.in_strides = {shape[axis] * inner, 1};
    block.out_strides = {run, 1};
    CopyStrided(block, ItemSize(x.dtype()), x.raw(), y->raw());
    block.in_offset += run;
  }
}

void RunTranspose(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& in = call.x(0).shape();
  const Shape& out = call.y(0).shape();
  const auto perm = call.attrs().Ints("perm");
  const auto in_strides = in.Strides();
  const auto out_strides = out.Strides();
  StridedBlock block;
  for (int i = 0; i < out.rank(); ++i) {
    const auto k = static_cast<size_t>(i);
    const auto from =
        perm.empty() ? static_cast<size_t>(in.rank() - 1 - i) : static_cast<size_t>(perm[k]);
    block.Append(out[i], in_strides[from], out_strides[k]);
  }
  CopyStrided(block, ItemSize(call.x(0).dtype()), call.x(0).raw(), call.y(0).raw());
}

bool AcceptsExpand(const OpCall& call, std::string* why) {
  if (call.constant(1)) return true;
  *why = "the shape is not constant";
  return false;
}

void RunExpand(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& in = call.x(0).shape();
  const Shape& out = call.y(0).shape();
  const auto in_strides = in.Strides();
  const auto out_strides = out.Strides();
  StridedBlock block;
  const int shift = out.rank() - in.rank();
  for (int d = 0; d < out.rank(); ++d) {
    const bool repeats = d < shift || in[d - shift] == 1;
    block.Append(out[d], repeats ? 0 : in_strides[static_cast<size_t>(d - shift)],
                 out_strides[static_cast<size_t>(d)]);
  }
  CopyStrided(block, ItemSize(call.x(0).dtype()), call.x(0).raw(), call.y(0).raw());
}

WHIMBREL_REGISTER(Kernel{
    .op = "Concat", .name = "runs", .rank = 50, .layout = LayoutRule::kFollow, .run = RunConcat});
WHIMBREL_REGISTER(Kernel{.op = "Split",
                         .name = "runs",
                         .rank = 50,
                         .layout = LayoutRule::kFollow,
                         .accepts = AcceptsSplit,
                         .run = RunSplit});
WHIMBREL_REGISTER(Kernel{.op = "Transpose", .name = "tiles", .rank = 50, .run = RunTranspose});
WHIMBREL_REGISTER(Kernel{
    .op = "Expand", .name = "runs", .rank = 50, .accepts = AcceptsExpand, .run = RunExpand});

}  // namespace
}  // namespace whimbrel
