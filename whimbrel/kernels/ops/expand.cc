// Expand: y = input broadcast with shape; a 1 in shape keeps the input's dimension.
//
// in   input   any type
//      shape   [rank] i64
// out  output  broadcast of input's shape and shape
// Source: ONNX operator Expand (8, 13).

#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/move.h"

namespace whimbrel {
namespace {

// Every row of a tensor with one known element that fills a short vector.
void SetRepeatedElements(InferContext& c) {
  ValueInfo& out = c.out(0);
  if (!HoldsElements(out.dtype) || !out.dims || out.dims->size() > 1) return;
  const auto elements = SmallElements(c, 0);
  const Dim count = out.dims->empty() ? Dim(1) : out.dims->front();
  if (!elements || !count.known() || count.value() > kMaxElements) return;
  const auto n = static_cast<size_t>(count.value());
  if (elements->size() == n) {
    out.elements = elements;
  } else if (elements->size() == 1) {
    out.elements = Dims(n, elements->front());
  }
}

void Infer(InferContext& c) {
  c.SetOut(0, c.in(0).dtype, std::nullopt);
  const auto& length = c.in(1).dims;
  if (length && length->size() != 1) c.Fail("shape must have rank 1, is " + ToString(*length));
  auto target = c.Elements(1);
  if (!target && length && length->front().known()) {
    const int64_t rank = length->front().value();
    if (rank < 0 || rank > kMaxRank) {
      c.Fail("shape of " + std::to_string(rank) + " dimensions; at most " +
             std::to_string(kMaxRank) + " are supported");
    }
    target = Dims(static_cast<size_t>(rank));
  }
  if (!target) return;
  for (const Dim& d : *target) {
    if (d.known() && d.value() < 0) {
      c.Fail("shape " + ToString(*target) + " has a negative dimension",
             "1 keeps the input's dimension; -1 is not taken by this operator");
    }
  }
  if (!c.in(0).dims) return;
  auto dims = BroadcastDims(*c.in(0).dims, *target);
  if (!dims) {
    c.Fail("input " + ToString(*c.in(0).dims) + " does not expand to " + ToString(*target),
           "dimensions must be equal or 1, aligned at the right");
  }
  c.out(0).dims = std::move(dims);
  SetRepeatedElements(c);
}

Shape OutputShape(const OpCall& call) {
  const Tensor& target = call.x(1);
  const Shape wanted(target.values<int64_t>());
  Shape shape;
  if (!BroadcastShapes(call.x(0).shape(), wanted, &shape)) {
    throw Error(Code::kInvalidData, "Expand: input " + ToString(call.x(0).shape()) +
                                        " does not expand to " + ToString(wanted));
  }
  return shape;
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Tensor& x = call.x(0);
  const Shape shape = OutputShape(call);
  call.ResizeOutput(0, x.dtype(), shape);
  const auto in_strides = x.shape().Strides();
  const auto out_strides = shape.Strides();
  StridedBlock block;
  for (int d = 0; d < shape.rank(); ++d) {
    const int from = d - (shape.rank() - x.shape().rank());
    const bool repeated = from < 0 || x.shape()[from] == 1;
    block.Append(shape[d], repeated ? 0 : in_strides[static_cast<size_t>(from)],
                 out_strides[static_cast<size_t>(d)]);
  }
  CopyBlock(block, ItemSize(x.dtype()), x.raw(), call.y(0).raw());
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema schema;
  schema.name = "Expand";
  schema.since = since;
  schema.until = until;
  schema.inputs = {{.name = "input", .types = types, .group = 1},
                   {.name = "shape", .types = TypeBit(DType::kInt64)}};
  schema.outputs = {{.name = "output", .types = types, .group = 1}};
  schema.infer = Infer;
  schema.cost = MoveCost;
  schema.samples = std::move(samples);
  return schema;
}

WHIMBREL_REGISTER(Schema(8, 13, kAllTypesTo12, {"f32:3x1 i64:2={3,4}", "i64:1 i64:1={5}"}));
WHIMBREL_REGISTER(Schema(13, INT_MAX, kAllTypes,
                         {"f32:3x1 i64:2={3,16}", "f32:3x4 i64:1={1}", "f32:1 i64:1={1}",
                          "f32: i64:2={2,3}", "f32: i64:0={}", "f32:1x3 i64:2={0,1}",
                          "f32:0x1 i64:2={1,5}", "f32:3x1 i64:3={2,1,6}", "f16:7x1 i64:2={7,17}",
                          "bf16:17 i64:2={7,17}", "f64:1x3 i64:2={3,3}", "i64:1={7} i64:1={9}",
                          "i32: i64:1={3}", "bool:1x5 i64:2={4,1}", "u8:2x1x3x1 i64:4={1,5,1,2}",
                          "f32:1x64x1x1 i64:4={1,64,40,40}", "f32:2x1 i64:2={1,4} nan=1"}));
WHIMBREL_REGISTER(Kernel{.op = "Expand", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
