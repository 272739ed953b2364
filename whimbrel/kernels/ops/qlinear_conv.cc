// QLinearConv: y = saturate(round((conv(x - xz, w - wz) + B) * (xs ws / ys)) + yz), sums in int32.
//
// in   x             [batch, channels, spatial...]  i8 | u8
//      x_scale, x_zero_point  one
//      w             [out channels, channels / group, kernel...]  i8 | u8
//      w_scale, w_zero_point  one or [out channels]
//      y_scale, y_zero_point  one
//      B             [out channels]  i32 in units of xs ws, optional
// attr auto_pad, dilations, group, kernel_shape, pads, strides
// out  y             [batch, out channels, out spatial...], type of y_zero_point
// Source: ONNX operator QLinearConv (10). The factor xs ws / ys and its product with the sum are
// rounded to float, as in ONNX Runtime.

#include "whimbrel/kernels/ops/quantized_product.h"

namespace whimbrel {
namespace {

enum Input : size_t { kX, kXScale, kXZero, kW, kWScale, kWZero, kYScale, kYZero, kBias };
constexpr ConvInputs kInputs{.x = kX, .w = kW, .x_zero = kXZero, .w_zero = kWZero, .bias = kBias};

void Infer(InferContext& c) {
  auto dims = InferConvDims(c, kInputs);
  for (size_t i : {size_t{kXScale}, size_t{kXZero}, size_t{kYScale}, size_t{kYZero}})
    CheckOneElement(c, i);
  InferChannelParameter(c, kWScale, kW);
  InferChannelParameter(c, kWZero, kW);
  c.SetOut(0, c.in(kYZero).dtype, std::move(dims));
}

Cost ProductCost(const OpCall& call) {
  return QuantizedConvCost(call, kInputs);
}
size_t Workspace(const OpCall& call) {
  return QuantizedConvWorkspace(call, kInputs);
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& stream) {
  OneElement(call, kXZero);
  const auto x_scale = static_cast<float>(OneElement(call, kXScale));
  const auto y_scale = static_cast<float>(OneElement(call, kYScale));
  const auto y_zero = static_cast<int64_t>(OneElement(call, kYZero));
  const auto w_scale = call.x(kWScale).values<float>();
  if (w_scale.size() != 1 && static_cast<int64_t>(w_scale.size()) != call.x(kW).shape()[0]) {
    throw Error(Code::kInvalidData, "QLinearConv: one scale for each output channel is needed");
  }
  const auto sums = QuantizedConv(call, kInputs, workspace, stream);
  const Shape& shape = call.y(0).shape();
  DispatchReference<kQuantized8>(call, call.y(0).dtype(), [&]<typename Q>() {
    Q* y = call.y(0).data<Q>();
    ParallelFor(call.y(0).elements(), 16384, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto channel = static_cast<size_t>(ChannelOf(shape, i));
        const float factor = x_scale * w_scale[w_scale.size() == 1 ? 0 : channel] / y_scale;
        const auto sum = static_cast<int32_t>(static_cast<int64_t>(sums[static_cast<size_t>(i)]));
        y[i] = Quantize<Q>(static_cast<float>(sum) * factor, y_zero);
      }
    });
  });
}

WHIMBREL_REGISTER(OpSchema{
    .name = "QLinearConv",
    .since = 10,
    .inputs = {{.name = "x", .types = kQuantized8, .group = 1},
               {.name = "x_scale", .types = TypeBit(DType::kFloat)},
               {.name = "x_zero_point", .types = kQuantized8, .group = 1},
               {.name = "w", .types = kQuantized8, .group = 2},
               {.name = "w_scale", .types = TypeBit(DType::kFloat)},
               {.name = "w_zero_point", .types = kQuantized8, .group = 2},
               {.name = "y_scale", .types = TypeBit(DType::kFloat)},
               {.name = "y_zero_point", .types = kQuantized8, .group = 3},
               {.name = "B", .types = TypeBit(DType::kInt32), .optional = true}},
    .outputs = {{.name = "y", .types = kQuantized8, .group = 3}},
    .attributes = ConvAttributes(),
    .infer = Infer,
    .cost = ProductCost,
    .samples =
        {"u8:1x16x20x20@0..255 f32:={0.02} u8:={128} i8:32x16x3x3@-128..127! f32:32@0.01..0.02! "
         "i8:32@0..0! f32:={0.3} u8:={100} i32:32@-900..900! pads=1,1,1,1",
         "u8:1x1x1x1 f32:={0.02} u8:={1} u8:1x1x1x1! f32:={0.1}! u8:={1}! f32:={0.3} u8:={100}",
         "i8:1x3x9x7@-128..127 f32:={0.02} i8:={3} i8:4x3x3x3@-128..127! f32:={0.01}! i8:={0}! "
         "f32:={0.1} i8:={-5} strides=2,2 pads=1,1,1,1",
         "u8:1x6x7x7@0..255 f32:={0.02} u8:={128} u8:6x1x3x3@0..255! f32:6@0.01..0.02! "
         "u8:6@100..130! f32:={0.1} u8:={128} group=6 auto_pad=SAME_LOWER",
         "u8:2x4x21@0..255 f32:={0.02} u8:={128} i8:6x4x5@-9..9! f32:={0.01}! i8:={0}! f32:={0.1} "
         "i8:={0} i32:6! strides=3",
         "u8:0x3x8x8 f32:={0.02} u8:={128} i8:4x3x3x3@-9..9! f32:={0.01}! i8:={0}! f32:={0.1} "
         "u8:={0}"},
    .matrix_op = true,
    .doc = "convolution of 8 bit numbers, requantised"});
WHIMBREL_REGISTER(Kernel{
    .op = "QLinearConv", .name = "reference", .workspace = Workspace, .run = Run});

}  // namespace
}  // namespace whimbrel
