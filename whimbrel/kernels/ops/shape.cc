// Shape: the dimensions of data, from axis start to axis end.
//
// in   data   any type
// attr start  int, default 0; negative counts from the end (from 15)
//      end    int, default the rank, exclusive; both are clamped to [0, rank] (from 15)
// out  shape  [end - start] i64
// Source: ONNX operator Shape (1, 13, 15, 19, 21, 23, 24, 25).

#include <algorithm>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

struct AxisRange {
  int begin = 0;
  int end = 0;
};

AxisRange AxesOf(const Attributes& attrs, int rank) {
  const auto clamp = [rank](int64_t axis) {
    if (axis < -rank) axis = -rank;
    return static_cast<int>(std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank));
  };
  const int begin = clamp(attrs.Int("start", 0));
  return {begin, std::max(begin, clamp(attrs.Int("end", rank)))};
}

void Infer(InferContext& c) {
  if (!c.in(0).dims) {
    c.SetOut(0, DType::kInt64, Dims{Dim()});
    return;
  }
  const Dims& dims = *c.in(0).dims;
  const AxisRange axes = AxesOf(c.attrs(), c.in(0).rank());
  c.SetOut(0, DType::kInt64, Dims{Dim(axes.end - axes.begin)});
  c.out(0).elements = Dims(dims.begin() + axes.begin, dims.begin() + axes.end);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& shape = call.x(0).shape();
  const AxisRange axes = AxesOf(call.attrs(), shape.rank());
  call.ResizeOutput(0, DType::kInt64, Shape{axes.end - axes.begin});
  int64_t* y = call.y(0).data<int64_t>();
  for (int d = axes.begin; d < axes.end; ++d) *y++ = shape[d];
}

// The elements of data are not read.
Cost CostOfShape(const OpCall& call) {
  return {.flops = 0, .bytes = static_cast<double>(call.y(0).bytes())};
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema schema;
  schema.name = "Shape";
  schema.since = since;
  schema.until = until;
  schema.inputs = {{.name = "data", .types = types}};
  schema.outputs = {{.name = "shape", .types = TypeBit(DType::kInt64)}};
  if (since >= 15) {
    schema.attributes = {{"start", AttributeType::kInt, false, "default 0: first axis"},
                         {"end", AttributeType::kInt, false, "default rank: axis after the last"}};
  }
  schema.infer = Infer;
  schema.cost = CostOfShape;
  schema.samples = std::move(samples);
  return schema;
}

WHIMBREL_REGISTER(Schema(1, 13, kAllTypesTo12, {"f32:3x4 opset=7", "i64:5"}));
WHIMBREL_REGISTER(Schema(13, 15, kAllTypes, {"bf16:3x4", "f32:"}));
WHIMBREL_REGISTER(Schema(15, INT_MAX, kAllTypes,
                         {"f32:3x16", "f32:1", "f32:", "f32:0x8", "f16:7x17", "bool:2x3x4x5x6",
                          "f32:2x3x4 start=1", "f32:2x3x4 end=-1", "f32:2x3x4 start=-1",
                          "f32:2x3x4 start=1 end=2", "f32:2x3x4 start=2 end=1",
                          "f32:2x3x4 start=-9 end=9", "f32: start=1 end=-1", "i64:1x64x40x40"}));
WHIMBREL_REGISTER(Kernel{.op = "Shape", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
