// Upsample: y = x sampled at larger sizes: y[i] from x[i / scale] on each axis.
//
// in   X       type T, any rank
//      scales  f32 [rank], from opset 9
// attr mode    "nearest" (default), "linear"
//      scales  floats, before opset 9
// out  Y       type T
// Source: ONNX operator Upsample (7, 9); Resize took its place at opset 10.

#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/resize_geometry.h"

namespace whimbrel {
namespace {

OpSchema Schema(int since, int until, std::vector<std::string_view> samples) {
  OpSchema schema{
      .name = "Upsample",
      .since = since,
      .until = until,
      .inputs = {{.name = "X", .types = kAllTypesTo12, .group = 1}},
      .outputs = {{.name = "Y", .types = kAllTypesTo12, .group = 1}},
      .attributes = {{"mode", AttributeType::kString, false, "nearest (default), linear"}},
      .infer = InferResize,
      .cost = ResizeCost,
      .samples = std::move(samples),
  };
  if (since < 9) {
    schema.attributes.push_back({"scales", AttributeType::kFloats, true, "one per axis"});
  } else {
    schema.inputs.push_back({.name = "scales", .types = TypeBit(DType::kFloat)});
  }
  return schema;
}

WHIMBREL_REGISTER(
    Schema(7, 9, {"f32:1x2x3x3 scales=1,1,2,2", "f16:1x1x2x3 scales=1,1,1.5,2 mode=linear"}));
WHIMBREL_REGISTER(Schema(9, 10,
                         {"f32:1x16x20x20 f32:4={1,1,2,2}",
                          "f32:1x2x4x4 f32:4={1,1,2,3} mode=linear", "f32:1x1x1x1 f32:4={1,1,5,5}",
                          "f32:1x1x3x5 f32:4={1,1,1.5,1.4}", "f32:0x1x3x5 f32:4={1,1,2,2}",
                          "u8:1x1x3x3 f32:4={1,1,2,2}", "f32:3 f32:1={2} mode=linear",
                          "i64:2x3 f32:2={2,1}"}));
WHIMBREL_REGISTER(Kernel{.op = "Upsample", .name = "reference", .run = RunResize});

}  // namespace
}  // namespace whimbrel
