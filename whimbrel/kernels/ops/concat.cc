// Concat: y = the inputs one after another along one axis.
//
// in   inputs  any type, equal dims except on the axis
// attr axis    int, required; negative counts from the end
// out  concat_result
// Source: ONNX operator Concat (4, 11, 13); negative axes are taken at 4 too.

#include <fmt/format.h>

#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/move.h"

namespace whimbrel {
namespace {

// One dim seen by two inputs: the number or name wins over the unknown.
Dim Merge(InferContext& c, const Dim& a, const Dim& b, size_t input, size_t axis) {
  if (a.known() && b.known() && !a.Same(b)) {
    c.Fail(fmt::format("input {} has {} at dim {}, the inputs before it have {}", input,
                       ToString(b), axis, ToString(a)),
           "all dims but the one of the axis must be equal");
  }
  if (a.known()) return a;
  return b.known() || a.text().empty() ? b : a;
}

void InferElements(InferContext& c) {
  Dims all;
  for (size_t i = 0; i < c.inputs(); ++i) {
    if (const auto some = SmallElements(c, i)) {
      all.insert(all.end(), some->begin(), some->end());
    } else {
      const Dims& dims = *c.in(i).dims;
      if (!dims[0].known() || dims[0].value() > kMaxElements) return;
      all.resize(all.size() + static_cast<size_t>(dims[0].value()));
    }
  }
  if (static_cast<int64_t>(all.size()) <= kMaxElements) c.out(0).elements = std::move(all);
}

void Infer(InferContext& c) {
  const int64_t wanted = c.attrs().Int("axis", 0);
  std::optional<Dims> out;
  bool all_ranks_known = true;
  Dim sum = 0;
  size_t axis = 0;
  for (size_t i = 0; i < c.inputs(); ++i) {
    const auto& dims = c.in(i).dims;
    if (!dims) {
      all_ranks_known = false;
      continue;
    }
    if (dims->empty()) c.Fail(fmt::format("input {} is a scalar", i), "unsqueeze it first");
    if (!out) {
      axis = static_cast<size_t>(NormalizeAxis(wanted, static_cast<int>(dims->size()), "Concat"));
      out = *dims;
    } else if (out->size() != dims->size()) {
      c.Fail(fmt::format("input {} is {}, the inputs before it have rank {}", i, ToString(*dims),
                         out->size()));
    }
    for (size_t d = 0; d < dims->size(); ++d) {
      if (d != axis) (*out)[d] = Merge(c, (*out)[d], (*dims)[d], i, d);
    }
    sum = sum + (*dims)[axis];
  }
  if (out) (*out)[axis] = all_ranks_known ? sum : Dim();
  c.SetOut(0, c.in(0).dtype, out);
  if (all_ranks_known && out->size() == 1 && IsInteger(c.in(0).dtype)) InferElements(c);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  Tensor& y = call.y(0);
  const int rank = y.shape().rank();
  const int axis = NormalizeAxis(call.attrs().Int("axis", 0), rank, "Concat");
  if (y.elements() == 0) return;
  RowRange rows;
  rows.outer = y.shape().Product(0, axis);
  rows.inner = y.shape().Product(axis + 1, rank);
  rows.out_rows = y.shape()[axis];
  for (const Tensor* x : call.in) {
    if (x == nullptr) continue;
    rows.in_rows = rows.count = x->shape()[axis];
    CopyRows(rows, ItemSize(y.dtype()), x->raw(), y.raw());
    rows.out_begin += rows.count;
  }
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return OpSchema{
      .name = "Concat",
      .since = since,
      .until = until,
      .inputs = {{.name = "inputs", .types = types, .variadic = true, .group = 1}},
      .outputs = {{.name = "concat_result", .types = types, .group = 1}},
      .attributes = {{"axis", AttributeType::kInt, true, "in [-rank, rank)"}},
      .infer = Infer,
      .cost = MoveCost,
      .samples = std::move(samples),
  };
}

WHIMBREL_REGISTER(Schema(4, 13, kAllTypesTo12,
                         {"f32:2x3 f32:2x4 axis=1", "i64:0 i64:2={1,2} axis=0 opset=11"}));
WHIMBREL_REGISTER(Schema(13, INT_MAX, kAllTypes,
                         {"f32:2x3x4 f32:2x5x4 axis=1", "f32:1x16x40x40 f32:1x24x40x40 axis=1",
                          "f32:3x4 axis=-1", "f16:3x1x2 f16:3x1x1 f16:3x1x5 axis=-1",
                          "i64:0 i64:2={1,2} axis=0", "u8:2x0 u8:2x0 axis=1",
                          "bf16:7 bf16:9 axis=0", "f64:1x1 f64:2x1 axis=0",
                          "bool:3x3 bool:3x2 axis=1", "i16:2x2 i16:1x2 axis=0",
                          "f32:1x64x80x80 f32:1x64x80x80 f32:1x64x80x80 axis=1"}));
WHIMBREL_REGISTER(Kernel{.op = "Concat", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
