// MatMulInteger: y[..., i, j] = sum over k of (a[..., i, k] - az) (b[..., k, j] - bz), in int32.
//
// in   A  [..., rows, depth] or [depth]  i8 | u8
//      B  [..., depth, cols] or [depth]  i8 | u8
//      a_zero_point  one, [rows] or [..., rows, 1], optional
//      b_zero_point  one, [cols] or [..., 1, cols], optional
// out  Y  [..., rows, cols]  i32; sums wrap
// Source: ONNX operator MatMulInteger (10).

#include "whimbrel/kernels/ops/quantized_product.h"

namespace whimbrel {
namespace {

MatMulGeometry GeometryOf(const OpCall& call) {
  return MakeMatMulGeometry(call.schema->name, call.x(0).shape(), call.x(1).shape(), false, false);
}

void Infer(InferContext& c) {
  auto dims = InferMatMulDims(c, false, false);
  InferLineParameter(c, 2, 0, true);
  InferLineParameter(c, 3, 1, false);
  c.SetOut(0, DType::kInt32, std::move(dims));
}

Cost ProductCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops = 2 * GeometryOf(call).macs();
  return cost;
}

size_t Workspace(const OpCall& call) {
  return WidenedIntegerBytes(call.x(0)) + WidenedIntegerBytes(call.x(1));
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  const int32_t* a = WidenLessZero(call, 0, 2, true, workspace);
  const int32_t* b = WidenLessZero(call, 1, 3, false, workspace);
  int32_t* y = call.y(0).data<int32_t>();
  MatMulReference(GeometryOf(call), a, b,
                  [y](int64_t at, int64_t /*row*/, int64_t /*column*/, auto sums) {
                    for (size_t j = 0; j < sums.size(); ++j)
                      y[at + static_cast<int64_t>(j)] = static_cast<int32_t>(sums[j]);
                  });
}

WHIMBREL_REGISTER(OpSchema{
    .name = "MatMulInteger",
    .since = 10,
    .inputs = {{.name = "A", .types = kQuantized8, .group = 1},
               {.name = "B", .types = kQuantized8, .group = 2},
               {.name = "a_zero_point", .types = kQuantized8, .optional = true, .group = 1},
               {.name = "b_zero_point", .types = kQuantized8, .optional = true, .group = 2}},
    .outputs = {{.name = "Y", .types = TypeBit(DType::kInt32)}},
    .infer = Infer,
    .cost = ProductCost,
    .samples = {"u8:32x64@0..255 i8:64x48@-128..127! u8:={128} i8:={0}!", "u8:4x5 u8:5x6",
                "i8:1x1 i8:1x1", "u8:7x13@0..255 i8:13x5@-128..127! u8:7@0..9 i8:5@-9..9!",
                "i8:2x3x4@-128..127 i8:4x5 i8:2x3x1@-5..5 i8:1x5@-5..5",
                "i8:2x3x4 i8:2x4x5 - i8:2x1x5@-5..5", "u8:5 u8:5x4", "u8:4x5 u8:5", "u8:5 u8:5",
                "u8:0x5 u8:5x4", "u8:4x0 u8:0x3",
                "u8:1x4={255,255,255,255} i8:4x2={127,-128,127,-128,127,-128,127,-128}",
                "u8:1x768@0..255 i8:768x300@-128..127! u8:={7}"},
    .matrix_op = true,
    .doc = "matrix product of 8 bit numbers in int32"});
WHIMBREL_REGISTER(Kernel{
    .op = "MatMulInteger", .name = "reference", .workspace = Workspace, .run = Run});

}  // namespace
}  // namespace whimbrel
