// Split: y0, y1, ... = consecutive parts of x along one axis.
//
// in   input   any type
//      split   i64 [number of outputs], optional, from opset 13: the length of each part
// attr axis    int, default 0
//      split   ints, before opset 13
//      num_outputs  int, from opset 18: parts of equal length, the last one shorter
// out  outputs  one per part; without lengths all equal
// Source: ONNX operator Split (2, 11, 13, 18); negative axes are taken at 2 too.

#include <fmt/format.h>

#include "whimbrel/kernels/ops/axes.h"
#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/move.h"

namespace whimbrel {
namespace {

// Lengths of `parts` parts of `dim` when none are given. Before opset 18 they must be equal.
int64_t EqualPart(int64_t dim, int64_t parts, int64_t index, int opset) {
  const int64_t length = dim / parts + (dim % parts != 0 ? 1 : 0);
  const int64_t last = dim - length * (parts - 1);
  if (last < 0 || (opset < 18 && last != length)) {
    throw Error(Code::kInvalidData,
                fmt::format("Split: an axis of {} does not split into {} parts", dim, parts),
                "give the length of each part");
  }
  return index + 1 < parts ? length : last;
}

Dims InferParts(InferContext& c, const Dim& dim) {
  const auto parts = static_cast<int64_t>(c.outputs());
  const IntegerList split = InferIntegers(c, "split", 1);
  if (c.attrs().Has("num_outputs")) {
    const int64_t wanted = c.attrs().Int("num_outputs", 0);
    if (split.present) c.Fail("both split and num_outputs are given");
    if (wanted != parts) {
      c.Fail(fmt::format("num_outputs is {}, the node has {} outputs", wanted, parts));
    }
  }
  if (split.present && split.count && *split.count != parts) {
    c.Fail(fmt::format("split has {} lengths, the node has {} outputs", *split.count, parts));
  }
  Dims lengths(c.outputs());
  if (split.present) {
    if (!split.values) return lengths;
    Dim sum = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      lengths[i] = (*split.values)[i];
      if (lengths[i].value() < 0) c.Fail(fmt::format("length {} is negative", lengths[i].value()));
      sum = sum + lengths[i];
    }
    if (dim.known() && !sum.Same(dim)) {
      c.Fail(
          fmt::format("the lengths sum up to {}, the axis has {}", ToString(sum), ToString(dim)));
    }
    return lengths;
  }
  for (int64_t i = 0; i < parts; ++i) {
    Dim& length = lengths[static_cast<size_t>(i)];
    if (dim.known()) {
      length = EqualPart(dim.value(), parts, i, c.opset());
    } else if (parts == 1) {
      length = dim;
    } else if (c.opset() < 18) {
      length = FloorDiv(dim, parts);
    } else {
      length = CeilDiv(dim, parts);
      if (i + 1 == parts) length = dim - length * Dim(parts - 1);
    }
  }
  return lengths;
}

void Infer(InferContext& c) {
  const auto& in = c.in(0).dims;
  if (c.outputs() == 0) c.Fail("it has no output");
  if (!in) {
    for (size_t i = 0; i < c.outputs(); ++i) c.SetOut(i, c.in(0).dtype, std::nullopt);
    return;
  }
  const auto axis = static_cast<size_t>(
      NormalizeAxis(c.attrs().Int("axis", 0), static_cast<int>(in->size()), "Split"));
  const Dims lengths = InferParts(c, (*in)[axis]);
  const auto elements = in->size() == 1 ? SmallElements(c, 0) : std::nullopt;
  size_t begin = 0;
  for (size_t i = 0; i < c.outputs(); ++i) {
    Dims out = *in;
    out[axis] = lengths[i];
    c.SetOut(i, c.in(0).dtype, std::move(out));
    if (!elements || !lengths[i].known()) continue;
    const size_t end = begin + static_cast<size_t>(lengths[i].value());
    if (end > elements->size()) continue;
    c.out(i).elements.emplace(elements->begin() + static_cast<ptrdiff_t>(begin),
                              elements->begin() + static_cast<ptrdiff_t>(end));
    begin = end;
  }
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Tensor& x = call.x(0);
  const int rank = x.shape().rank();
  const int axis = NormalizeAxis(call.attrs().Int("axis", 0), rank, "Split");
  const auto parts = static_cast<int64_t>(call.out.size());
  // The lengths are read one by one: there may be more outputs than an axis list holds.
  const auto attribute = call.attrs().Ints(call.schema->since < 13 ? "split" : "");
  const bool by_input = call.schema->since >= 13 && call.has(1);
  const int64_t given = by_input ? call.x(1).elements() : static_cast<int64_t>(attribute.size());
  if (given != 0 && given != parts) {
    throw Error(Code::kInvalidData, fmt::format("Split: {} lengths for {} outputs", given, parts));
  }
  RowRange rows;
  rows.outer = x.shape().Product(0, axis);
  rows.inner = x.shape().Product(axis + 1, rank);
  rows.in_rows = x.shape()[axis];
  for (int64_t i = 0; i < parts; ++i) {
    const auto k = static_cast<size_t>(i);
    rows.count = given == 0 ? EqualPart(rows.in_rows, parts, i, call.opset)
                            : (by_input ? ElementAsInt64(call.x(1), i) : attribute[k]);
    rows.out_rows = rows.count;
    if (rows.count < 0 || rows.count > rows.in_rows - rows.in_begin) {
      throw Error(Code::kInvalidData,
                  fmt::format("Split: part {} has {} rows, {} of {} are left", i, rows.count,
                              rows.in_rows - rows.in_begin, rows.in_rows));
    }
    if (call.has_out(k)) {
      Shape shape = x.shape();
      shape.set(axis, rows.count);
      call.ResizeOutput(k, x.dtype(), shape);
      CopyRows(rows, ItemSize(x.dtype()), x.raw(), call.y(k).raw());
    }
    rows.in_begin += rows.count;
  }
  if (rows.in_begin != rows.in_rows) {
    throw Error(Code::kInvalidData, fmt::format("Split: the lengths sum up to {}, the axis has {}",
                                                rows.in_begin, rows.in_rows));
  }
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema schema{
      .name = "Split",
      .since = since,
      .until = until,
      .inputs = {{.name = "input", .types = types, .group = 1}},
      .outputs = {{.name = "outputs", .types = types, .variadic = true, .group = 1}},
      .attributes = {{"axis", AttributeType::kInt, false, "default 0; in [-rank, rank)"}},
      .infer = Infer,
      .cost = MoveCost,
      .samples = std::move(samples),
  };
  if (since < 13) {
    schema.attributes.push_back(
        {"split", AttributeType::kInts, false, "length of each part; default: equal"});
  } else {
    schema.inputs.push_back({.name = "split", .types = TypeBit(DType::kInt64), .optional = true});
  }
  if (since >= 18) {
    schema.attributes.push_back(
        {"num_outputs", AttributeType::kInt, false, "equal parts, the last one shorter"});
  }
  return schema;
}

WHIMBREL_REGISTER(Schema(2, 13, kAllTypesTo12,
                         {"f32:6x2 outputs=3", "f32:2x7 axis=1 split=2,5 outputs=2",
                          "i64:4 axis=-1 outputs=2 opset=11"}));
WHIMBREL_REGISTER(Schema(13, 18, kAllTypes,
                         {"f32:6x2 outputs=3", "bf16:2x7 i64:2={3,4} axis=1 outputs=2"}));
WHIMBREL_REGISTER(
    Schema(18, INT_MAX, kAllTypes,
           {"f32:1x64x40x40 axis=1 num_outputs=2 outputs=2", "f32:7 num_outputs=3 outputs=3",
            "f32:2x7x3 i64:3={2,0,5} axis=1 outputs=3", "f32:2x6 i64:2@3..3 axis=-1 outputs=2",
            "f32:0x4 num_outputs=2 outputs=2", "f32:3x4 num_outputs=1 outputs=1",
            "f16:5x17 num_outputs=4 axis=1 outputs=4", "bf16:3x3 num_outputs=3 outputs=3",
            "i64:4 i64:2={1,3} outputs=2", "bool:9 num_outputs=2 outputs=2",
            "u8:2x2x2 num_outputs=2 axis=2 outputs=2", "f64:1 i64:2={0,1} outputs=2",
            "f32:1x384x512 axis=1 num_outputs=3 outputs=3"}));
WHIMBREL_REGISTER(Kernel{.op = "Split", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
