// Resize: y = x sampled at other sizes: the nearest element, or a weighted sum of neighbours.
//
// in   X       type T, any rank
//      scales  f32 [n], at opset 10 input 1; later input 2 after roi
//      roi     f32 | f64 | f16 [2 n], starts then ends in parts of the axis; for
//              tf_crop_and_resize only
//      sizes   i64 [n], instead of scales
// attr mode    "nearest" (default), "linear", "cubic"
//      coordinate_transformation_mode, nearest_mode, cubic_coeff_a, exclude_outside,
//      extrapolation_value  from opset 11
//      antialias, axes, keep_aspect_ratio_policy  from opset 18
// out  Y       type T
// Source coordinates are exact fractions of the sizes, so that "nearest" never depends on rounding
// of a scale. Opset 10 takes floor when an axis grows and ceil when it shrinks, as ONNX Runtime
// does.
// Source: ONNX operator Resize (10, 11, 13, 18, 19).

#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/resize_geometry.h"

namespace whimbrel {
namespace {

constexpr TypeMask kFloat = TypeBit(DType::kFloat);

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema schema{
      .name = "Resize",
      .since = since,
      .until = until,
      .inputs = {{.name = "X", .types = types, .group = 1}},
      .outputs = {{.name = "Y", .types = types, .group = 1}},
      .attributes = {{"mode", AttributeType::kString, false, "nearest (default), linear, cubic"}},
      .infer = InferResize,
      .cost = ResizeCost,
      .samples = std::move(samples),
  };
  if (since < 11) {
    schema.inputs.push_back({.name = "scales", .types = kFloat});
    return schema;
  }
  // At 11 roi and scales are required, and may hold no elements; exporters leave them out too.
  schema.inputs.push_back({.name = "roi", .types = kFloatTypesTo12, .optional = true});
  schema.inputs.push_back({.name = "scales", .types = kFloat, .optional = true});
  schema.inputs.push_back({.name = "sizes", .types = TypeBit(DType::kInt64), .optional = true});
  schema.attributes.insert(
      schema.attributes.end(),
      {{"coordinate_transformation_mode", AttributeType::kString, false,
        "half_pixel (default), pytorch_half_pixel, align_corners, asymmetric, tf_crop_and_resize; "
        "tf_half_pixel_for_nn at 11, half_pixel_symmetric from 19"},
       {"nearest_mode", AttributeType::kString, false,
        "round_prefer_floor (default), round_prefer_ceil, floor, ceil"},
       {"cubic_coeff_a", AttributeType::kFloat, false, "default -0.75"},
       {"exclude_outside", AttributeType::kInt, false, "default 0; 1: no weight outside x"},
       {"extrapolation_value", AttributeType::kFloat, false, "default 0; outside under tf_crop"}});
  if (since >= 18) {
    schema.attributes.insert(
        schema.attributes.end(),
        {{"antialias", AttributeType::kInt, false, "default 0; 1: wider filter when shrinking"},
         {"axes", AttributeType::kInts, false, "axes of roi, scales and sizes; default all"},
         {"keep_aspect_ratio_policy", AttributeType::kString, false,
          "stretch (default), not_larger, not_smaller"}});
  }
  return schema;
}

WHIMBREL_REGISTER(Schema(10, 11, kAllTypesTo12,
                         {"f32:1x1x2x4 f32:4={1,1,0.6,0.6}", "f32:1x2x3x3 f32:4={1,1,2,2}",
                          "f32:1x1x4x4 f32:4={1,1,1.5,0.5} mode=linear"}));
WHIMBREL_REGISTER(
    Schema(11, 13, kAllTypesTo12,
           {"f32:4x4x10x10 f32:0 f32:0 i64:4={4,4,30,30} "
            "coordinate_transformation_mode=tf_half_pixel_for_nn nearest_mode=ceil",
            "f32:1x1x1x26 f32:0 f32:4={1,1,1,2.4615386} nearest_mode=round_prefer_ceil",
            "f32:1x2x4x4 f32:0 f32:4={1,1,2,2} mode=linear",
            "f16:1x1x4x5 f32:0 f32:4={1,1,0.8,1.7} mode=cubic"}));
WHIMBREL_REGISTER(Schema(13, 18, kAllTypes,
                         {"f32:1x2x3x3 - f32:4={1,1,2,2} mode=nearest "
                          "coordinate_transformation_mode=asymmetric nearest_mode=floor",
                          "bf16:1x1x4x4 - - i64:4={1,1,7,5} mode=linear"}));
WHIMBREL_REGISTER(
    Schema(18, 19, kAllTypes,
           {"f32:1x1x6x6 - f32:2={0.5,0.4} axes=2,3 mode=linear antialias=1",
            "f32:1x1x5x8 - - i64:2={4,4} axes=2,3 keep_aspect_ratio_policy=not_larger"}));
WHIMBREL_REGISTER(Schema(
    19, INT_MAX, kAllTypes,
    // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): long cases take two lines
    {"f32:1x16x20x20 - f32:4={1,1,2,2} coordinate_transformation_mode=asymmetric "
     "nearest_mode=floor",
     "f32:1x1x1x26 - - i64:4={1,1,1,64} coordinate_transformation_mode=asymmetric "
     "nearest_mode=floor",
     "f32:1x1x3x4 - - i64:4={1,1,7,5} nearest_mode=round_prefer_ceil",
     "f32:1x1x3x4 - - i64:4={1,1,2,9} nearest_mode=ceil "
     "coordinate_transformation_mode=align_corners",
     "f32:1x3x16x16 - - i64:4={1,3,40,24} mode=linear",
     "f32:1x3x16x16 - - i64:4={1,3,33,31} mode=linear coordinate_transformation_mode=align_corners",
     "f32:1x1x7x9 - - i64:4={1,1,1,4} mode=linear "
     "coordinate_transformation_mode=pytorch_half_pixel",
     "f32:1x1x4x4 - f32:4={1,1,2.3,0.7} mode=linear "
     "coordinate_transformation_mode=half_pixel_symmetric",
     "f32:1x2x6x5 - - i64:4={1,2,9,3} mode=cubic",
     "f32:1x1x6x5 - - i64:4={1,1,9,3} mode=cubic cubic_coeff_a=-0.5 exclude_outside=1",
     "f32:1x1x9x9 - - i64:4={1,1,4,3} mode=cubic antialias=1",
     "f32:1x2x15x11 - - i64:4={1,2,4,5} mode=linear antialias=1 exclude_outside=1",
     "f32:1x1x4x4 f32:4={0.4,0.6,0.9,1.3} - i64:2={3,5} axes=2,3 mode=linear "
     "coordinate_transformation_mode=tf_crop_and_resize extrapolation_value=10",
     "f32:5x8 - - i64:2={3,4} keep_aspect_ratio_policy=not_smaller mode=linear",
     "f32:2x3x4 - f32:3={2,1.5,0.5} mode=linear",
     "f32:7 - f32:1={3} mode=linear",
     "f32:1x1x2x3x4 - f32:5={1,1,2,2,2} mode=linear",
     "f32:1x1x4x4 - f32:4={1,1,1,1}",
     "f32:1x1x4x4 - - i64:4@1..4",
     "f32:0x3x4x4 - f32:4={1,1,2,2}",
     "f32:1x1x4x4 - f32:4={1,1,0.1,1}",
     "f16:1x3x5x7 - f32:4={1,1,2,2} mode=linear",
     "bf16:1x1x5x7 - f32:4={1,1,2,2}",
     "u8:1x3x8x8@0..255 - - i64:4={1,3,5,11} mode=linear",
     "i32:1x1x3x3 - f32:4={1,1,2,2} mode=cubic",
     "f64:3x3 - f32:2={1.5,1.5} mode=cubic",
     "bool:2x3 - f32:2={2,2}",
     "f32:1x1x3x3 - f32:4={1,1,2,2} nan=1",
     "f32:1x64x40x40 - f32:4={1,1,2,2}"}));
WHIMBREL_REGISTER(Kernel{.op = "Resize", .name = "reference", .run = RunResize});

}  // namespace
}  // namespace whimbrel
