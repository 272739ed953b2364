// DynamicQuantizeLinear: y = saturate(round(x / scale) + zero point) with the scale and zero point
// that cover 0 and all of x.
//
// in   x             f32
// out  y             u8, like x
//      y_scale       f32 scalar: (max(0, x) - min(0, x)) / 255; 1 when that is 0
//      y_zero_point  u8 scalar: saturate(round(-min(0, x) / scale))
// Source: ONNX operator DynamicQuantizeLinear (11).

#include "whimbrel/kernels/ops/quantized.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  c.SetOut(0, DType::kUint8, c.in(0).dims);
  c.SetOut(1, DType::kFloat, Dims{});
  c.SetOut(2, DType::kUint8, Dims{});
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const auto x = call.x(0).values<float>();
  DynamicRange range;
  for (float v : x) range.Add(v);
  const float scale = range.scale();
  const uint8_t zero = range.zero_point();
  uint8_t* y = call.y(0).data<uint8_t>();
  ParallelFor(call.x(0).elements(), 16384, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      y[i] = Quantize<uint8_t>(x[static_cast<size_t>(i)] / scale, zero);
  });
  if (call.has_out(1)) call.y(1).data<float>()[0] = scale;
  if (call.has_out(2)) call.y(2).data<uint8_t>()[0] = zero;
}

WHIMBREL_REGISTER(OpSchema{
    .name = "DynamicQuantizeLinear",
    .since = 11,
    .inputs = {{.name = "x", .types = TypeBit(DType::kFloat)}},
    .outputs = {{.name = "y", .types = TypeBit(DType::kUint8)},
                {.name = "y_scale", .types = TypeBit(DType::kFloat)},
                {.name = "y_zero_point", .types = TypeBit(DType::kUint8)}},
    .infer = Infer,
    .samples = {"f32:3x16", "f32:1", "f32:", "f32:0x4", "f32:7x17@1..5", "f32:5@-9..-1",
                "f32:3={0,0,0}", "f32:4={0.5,1.5,2.5,255}", "f32:9 nan=1", "f32:64x1000"},
    .doc = "float to uint8 with a scale of its own"});
WHIMBREL_REGISTER(Kernel{.op = "DynamicQuantizeLinear", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
