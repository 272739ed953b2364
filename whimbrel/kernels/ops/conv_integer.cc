// ConvInteger: y[n, m, p] = sum over channels c of m's group and taps k of (w[m, c, k] - wz)
// (x[n, c, p stride + k dilation - pad] - xz), in int32; padding is xz.
//
// in   x  [batch, channels, spatial...]  i8 | u8
//      w  [out channels, channels / group, kernel...]  i8 | u8
//      x_zero_point  one, optional
//      w_zero_point  one or [out channels], optional
// attr auto_pad, dilations, group, kernel_shape, pads, strides
// out  y  [batch, out channels, out spatial...]  i32; sums wrap
// Source: ONNX operator ConvInteger (10).

#include "whimbrel/kernels/ops/quantized_product.h"

namespace whimbrel {
namespace {

constexpr ConvInputs kInputs{.x = 0, .w = 1, .x_zero = 2, .w_zero = 3};

void Infer(InferContext& c) {
  auto dims = InferConvDims(c, kInputs);
  CheckOneElement(c, 2);
  InferChannelParameter(c, 3, 1);
  c.SetOut(0, DType::kInt32, std::move(dims));
}

Cost ProductCost(const OpCall& call) {
  return QuantizedConvCost(call, kInputs);
}
size_t Workspace(const OpCall& call) {
  return QuantizedConvWorkspace(call, kInputs);
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& stream) {
  OneElement(call, 2);
  const auto sums = QuantizedConv(call, kInputs, workspace, stream);
  int32_t* y = call.y(0).data<int32_t>();
  ParallelFor(call.y(0).elements(), 16384, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      y[i] = static_cast<int32_t>(static_cast<int64_t>(sums[static_cast<size_t>(i)]));
  });
}

WHIMBREL_REGISTER(OpSchema{
    .name = "ConvInteger",
    .since = 10,
    .inputs = {{.name = "x", .types = kQuantized8, .group = 1},
               {.name = "w", .types = kQuantized8, .group = 2},
               {.name = "x_zero_point", .types = kQuantized8, .optional = true, .group = 1},
               {.name = "w_zero_point", .types = kQuantized8, .optional = true, .group = 2}},
    .outputs = {{.name = "y", .types = TypeBit(DType::kInt32)}},
    .attributes = ConvAttributes(),
    .infer = Infer,
    .cost = ProductCost,
    .samples = {"u8:1x16x20x20@0..255 i8:32x16x3x3@-128..127! u8:={128} i8:={0}! pads=1,1,1,1",
                "u8:1x1x1x1 u8:1x1x1x1!",
                "u8:1x3x9x7@0..255 u8:4x3x3x3@0..255! u8:={3} "
                "u8:4@0..255! strides=2,2 pads=1,1,1,1",
                "i8:1x6x7x7@-128..127 i8:6x1x3x3! i8:={-5} group=6 pads=1,1,1,1",
                "u8:2x4x21 u8:6x4x5! pads=0,3 strides=3", "u8:0x3x8x8 u8:4x3x3x3!",
                "u8:1x4x9x9 i8:4x2x3x3@-128..127! group=2 dilations=2,2 auto_pad=SAME_UPPER",
                "u8:1x2x5x6x7 i8:3x2x3x2x3! u8:={9}"},
    .matrix_op = true,
    .doc = "convolution of 8 bit numbers in int32"});
WHIMBREL_REGISTER(Kernel{
    .op = "ConvInteger", .name = "reference", .workspace = Workspace, .run = Run});

}  // namespace
}  // namespace whimbrel
