// Conv: y[n, m, p] = b[m] + sum over channels c of m's group and taps k of w[m, c, k] x[n, c, p
// stride + k dilation - pad].
//
// in   X  [batch, channels, spatial...]  f32 | f64 | f16, from opset 22 also bf16
//      W  [out channels, channels / group, kernel...]
//      B  [out channels], optional
// attr auto_pad, dilations, group, kernel_shape, pads, strides
// out  Y  [batch, out channels, out spatial...]
// Source: ONNX operator Conv (1, 11, 22); out = floor((in + pads - extent) / stride) + 1.

#include "whimbrel/kernels/ops/conv_common.h"

namespace whimbrel {
namespace {

OpSchema ConvSchema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return {
      .name = "Conv",
      .since = since,
      .until = until,
      .inputs = {{.name = "X", .types = types, .group = 1},
                 {.name = "W", .types = types, .group = 1},
                 {.name = "B", .types = types, .optional = true, .group = 1}},
      .outputs = {{.name = "Y", .types = types, .group = 1}},
      .attributes = ConvAttributes(),
      .infer = InferConv,
      .cost = ConvCost,
      .samples = std::move(samples),
      .matrix_op = true,
      .doc = "convolution over 1 to 6 spatial axes",
  };
}

constexpr TypeMask kOldTypes = kFloatTypes & ~TypeBit(DType::kBFloat16);

WHIMBREL_REGISTER(ConvSchema(1, 11, kOldTypes,
                             {"f32:1x3x8x9 f32:4x3x3x3! f32:4! pads=1,1,1,1 opset=7",
                              "f32:1x1x5x5 f32:1x1x3x3! opset=9",
                              "f64:2x2x6 f64:3x2x3! auto_pad=SAME_LOWER"}));
WHIMBREL_REGISTER(
    ConvSchema(11, 22, kOldTypes,
               {"f32:1x16x20x20 f32:32x16x3x3! f32:32! pads=1,1,1,1",
                "f32:2x8x15x13 f32:8x8x1x1! f32:8!",
                "f32:1x1x1x1 f32:1x1x1x1! f32:1!",
                "f32:1x3x33x31 f32:16x3x3x3! f32:16! strides=2,2 pads=1,1,1,1",
                "f32:1x16x17x19 f32:16x1x3x3! f32:16! group=16 pads=1,1,1,1",
                "f32:1x16x18x18 f32:16x1x5x5! group=16 strides=2,2 auto_pad=SAME_UPPER",
                "f32:1x12x9x9 f32:8x6x3x3! f32:8! group=2 dilations=2,2 pads=2,2,2,2",
                "f32:1x6x7x7 f32:4x6x2x4! auto_pad=SAME_LOWER strides=1,2",
                "f32:1x6x7x7 f32:4x6x3x3! auto_pad=VALID",
                "f32:2x4x21 f32:6x4x5! f32:6! pads=0,3 strides=3",
                "f32:1x2x5x6x7 f32:3x2x3x2x3! f32:3! pads=1,0,1,1,1,1",
                "f32:0x3x8x8 f32:4x3x3x3! f32:4!",
                "f32:1x64x40x40 f32:64x64x3x3! f32:64! pads=1,1,1,1",
                "f32:1x3x8x600 f32:2x3x3x3! pads=1,1,1,1",
                "f32:1x3x8x8 f32:4x3x3x3 f32:4",
                "f32:1x1x3={1,2,3} f32:1x1x2={1,10} auto_pad=SAME_UPPER",
                "f32:1x1x3={1,2,3} f32:1x1x2={1,10} auto_pad=SAME_LOWER",
                "f64:1x3x9x9 f64:4x3x3x3! kernel_shape=3,3",
                "f16:1x8x9x9 f16:8x8x3x3! f16:8! pads=1,1,1,1",
                "f32:1x4x6x6 f32:4x4x1x1! nan=1",
                "f32:1x2x4x4 f32:2x2x3x3! pads=2,2,2,2 strides=4,1"}));
WHIMBREL_REGISTER(ConvSchema(22, INT_MAX, kFloatTypes,
                             {"f32:1x8x14x14 f32:8x8x3x3! f32:8! pads=1,1,1,1",
                              "bf16:1x8x9x9 bf16:8x8x3x3! bf16:8! pads=1,1,1,1",
                              "f16:1x4x9x9 f16:4x1x3x3! group=4", "f32:2x20x11x13 f32:20x1x5x5! f32:20! group=20 pads=2,2,2,2",
                              "f32:1x35x9x7 f32:13x35x1x1! strides=2,2"}));
WHIMBREL_REGISTER(Kernel{.op = "Conv",
                         .name = "reference",
                         .workspace = ConvReferenceWorkspace,
                         .run = RunConvReference});

}  // namespace
}  // namespace whimbrel
