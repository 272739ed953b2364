// QLinearMatMul: y = saturate(round(sum (a - az) (b - bz) * (as bs / ys)) + yz), sums in int32.
//
// in   a             [..., rows, depth] or [depth]  i8 | u8
//      a_scale, a_zero_point  one, [rows] or [..., rows, 1]; scales f32, from 21 also f16 | bf16
//      b             [..., depth, cols] or [depth]  i8 | u8
//      b_scale, b_zero_point  one, [cols] or [..., 1, cols]
//      y_scale, y_zero_point  one
// out  y             [..., rows, cols], type of y_zero_point
// Source: ONNX operator QLinearMatMul (10, 21). The factor as bs / ys and its product with the sum
// are rounded to float, as in ONNX Runtime.

#include "whimbrel/kernels/ops/quantized_product.h"

namespace whimbrel {
namespace {

enum Input : size_t { kA, kAScale, kAZero, kB, kBScale, kBZero, kYScale, kYZero };

MatMulGeometry GeometryOf(const OpCall& call) {
  return MakeMatMulGeometry(call.schema->name, call.x(kA).shape(), call.x(kB).shape(), false,
                            false);
}

void Infer(InferContext& c) {
  const std::array<ValueInfo, 2> operands{c.in(kA), c.in(kB)};
  const InferContext product(c.schema(), c.attrs(), c.opset(), operands, 1);
  auto dims = InferMatMulDims(product, false, false);
  for (size_t i : {size_t{kAScale}, size_t{kAZero}}) InferLineParameter(c, i, kA, true);
  for (size_t i : {size_t{kBScale}, size_t{kBZero}}) InferLineParameter(c, i, kB, false);
  CheckOneElement(c, kYScale);
  CheckOneElement(c, kYZero);
  c.SetOut(0, c.in(kYZero).dtype, std::move(dims));
}

Cost ProductCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops = 2 * GeometryOf(call).macs();
  return cost;
}

size_t Workspace(const OpCall& call) {
  return WidenedIntegerBytes(call.x(kA)) + WidenedIntegerBytes(call.x(kB));
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  const MatMulGeometry g = GeometryOf(call);
  const int32_t* a = WidenLessZero(call, kA, kAZero, true, workspace);
  const int32_t* b = WidenLessZero(call, kB, kBZero, false, workspace);
  const LineParameter a_scale(call, kAScale, call.x(kA).shape(), true);
  const LineParameter b_scale(call, kBScale, call.x(kB).shape(), false);
  const auto y_scale = static_cast<float>(OneElement(call, kYScale));
  const auto y_zero = static_cast<int64_t>(OneElement(call, kYZero));
  const BroadcastWalk<2> walk(g.batch, {&g.a_batch, &g.b_batch});
  DispatchReference<kQuantized8>(call, call.y(0).dtype(), [&]<typename Q>() {
    Q* y = call.y(0).data<Q>();
    MatMulReference(g, a, b, [&](int64_t at, int64_t row, int64_t column, auto sums) {
      std::array<int64_t, 2> matrix{};
      walk.Run(row / g.rows, row / g.rows + 1,
               [&](int64_t, const std::array<int64_t, 2>& offset) { matrix = offset; });
      const auto left = static_cast<float>(a_scale.At(matrix[0], row % g.rows));
      for (size_t j = 0; j < sums.size(); ++j) {
        const auto index = static_cast<int64_t>(j);
        const float factor =
            left * static_cast<float>(b_scale.At(matrix[1], column + index)) / y_scale;
        const float value = static_cast<float>(static_cast<int32_t>(sums[j])) * factor;
        y[at + index] = Quantize<Q>(value, y_zero);
      }
    });
  });
}

OpSchema Schema(int since, int until, TypeMask scales, std::vector<std::string_view> samples) {
  return {.name = "QLinearMatMul",
          .since = since,
          .until = until,
          .inputs = {{.name = "a", .types = kQuantized8, .group = 1},
                     {.name = "a_scale", .types = scales, .group = 4},
                     {.name = "a_zero_point", .types = kQuantized8, .group = 1},
                     {.name = "b", .types = kQuantized8, .group = 2},
                     {.name = "b_scale", .types = scales, .group = 4},
                     {.name = "b_zero_point", .types = kQuantized8, .group = 2},
                     {.name = "y_scale", .types = scales, .group = 4},
                     {.name = "y_zero_point", .types = kQuantized8, .group = 3}},
          .outputs = {{.name = "y", .types = kQuantized8, .group = 3}},
          .infer = Infer,
          .cost = ProductCost,
          .samples = std::move(samples),
          .matrix_op = true,
          .doc = "matrix product of 8 bit numbers, requantised"};
}

WHIMBREL_REGISTER(Schema(
    10, 21, TypeBit(DType::kFloat),
    {"u8:32x64@0..255 f32:={0.02} u8:={128} i8:64x48@-128..127! f32:={0.01}! i8:={0}! f32:={0.3} "
     "u8:={100}",
     "u8:2x3x4@0..255 f32:={0.02} u8:={128} i8:4x5@-128..127! f32:5@0.01..0.02! i8:5@-3..3! "
     "f32:={0.1} i8:={0}"}));
WHIMBREL_REGISTER(Schema(
    21, INT_MAX, TypeBit(DType::kFloat) | TypeBit(DType::kFloat16) | kBFloat16Type,
    {"u8:3x4@0..255 f32:={0.02} u8:={128} u8:4x5@0..255 f32:={0.01} u8:={120} f32:={0.3} u8:={100}",
     "i8:1x1 f32:={0.5} i8:={0} i8:1x1 f32:={1} i8:={0} f32:={1} i8:={0}",
     "u8:7x13@0..255 f16:7@0.01..0.02 u8:7@0..255 i8:13x5@-128..127 f16:5@0.01..0.02 i8:5@-3..3 "
     "f16:={0.1} i8:={0}",
     "u8:5 f32:={0.1} u8:={3} u8:5x4 f32:={0.1} u8:={3} f32:={0.1} u8:={3}",
     "u8:0x5 f32:={0.1} u8:={3} u8:5x4 f32:={0.1} u8:={3} f32:={0.1} u8:={3}",
     "u8:4x5 f32:={0.1} u8:={3} u8:5 f32:={0.1} u8:={3} f32:={0.1} u8:={3}",
     "i8:2x3x4@-128..127 bf16:2x3x1@0.01..0.02 i8:2x3x1@-3..3 i8:4x5 bf16:={0.1} i8:={0} "
     "bf16:={0.1} i8:={0}"}));
WHIMBREL_REGISTER(Kernel{
    .op = "QLinearMatMul", .name = "reference", .workspace = Workspace, .run = Run});

}  // namespace
}  // namespace whimbrel
