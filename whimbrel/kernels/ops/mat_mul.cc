// MatMul: y[..., i, j] = sum over k of a[..., i, k] b[..., k, j], batch dims broadcast; integers
// wrap.
//
// in   A  [..., rows, depth] or [depth]  f32 | f64 | f16, from 9 i32 | i64 | u32 | u64, from 13
// bf16
//      B  [..., depth, cols] or [depth]
// out  Y  [..., rows, cols], without the axis that a vector lacks
// Source: ONNX operator MatMul (1, 9, 13), numpy.matmul.

#include "whimbrel/kernels/ops/matmul_common.h"

namespace whimbrel {
namespace {

constexpr TypeMask kWideIntegers = TypeBit(DType::kInt32) | TypeBit(DType::kInt64) |
                                   TypeBit(DType::kUint32) | TypeBit(DType::kUint64);
constexpr TypeMask kOldFloats = kFloatTypes & ~TypeBit(DType::kBFloat16);

MatMulGeometry GeometryOf(const OpCall& call) {
  return MakeMatMulGeometry(call.schema->name, call.x(0).shape(), call.x(1).shape(), false, false);
}

void Infer(InferContext& c) {
  c.SetOut(0, c.in(0).dtype, InferMatMulDims(c, false, false));
}

Cost MatMulCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops = 2 * GeometryOf(call).macs();
  return cost;
}

size_t Workspace(const OpCall& call) {
  return WidenedBytes(call.x(0)) + WidenedBytes(call.x(1));
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  DispatchReference<kFloatTypes | kWideIntegers>(call, call.x(0).dtype(), [&]<typename T>() {
    const auto* a = WidenInput<T>(call.x(0), workspace);
    const auto* b = WidenInput<T>(call.x(1), workspace);
    T* y = call.y(0).data<T>();
    MatMulReference(GeometryOf(call), a, b,
                    [y](int64_t at, int64_t /*row*/, int64_t /*column*/, auto sums) {
                      for (size_t j = 0; j < sums.size(); ++j)
                        y[at + static_cast<int64_t>(j)] = static_cast<T>(sums[j]);
                    });
  });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return {
      .name = "MatMul",
      .since = since,
      .until = until,
      .inputs = {{.name = "A", .types = types, .group = 1},
                 {.name = "B", .types = types, .group = 1}},
      .outputs = {{.name = "Y", .types = types, .group = 1}},
      .infer = Infer,
      .cost = MatMulCost,
      .samples = std::move(samples),
      .matrix_op = true,
      .doc = "batched matrix product",
  };
}

WHIMBREL_REGISTER(Schema(1, 9, kOldFloats, {"f32:4x5 f32:5x6 opset=7", "f64:3 f64:3"}));
WHIMBREL_REGISTER(Schema(9, 13, kOldFloats | kWideIntegers,
                         {"f32:2x4x5 f32:5x6", "i32:3x4 i32:4x2"}));
WHIMBREL_REGISTER(Schema(13, INT_MAX, kFloatTypes | kWideIntegers,
                         {"f32:32x64 f32:64x48!",
                          "f32:1x1 f32:1x1",
                          "f32:7x13 f32:13x5",
                          "f32:2x3x7x8 f32:2x3x8x9",
                          "f32:2x3x7x8 f32:8x9!",
                          "f32:1x3x4x5 f32:2x1x5x6",
                          "f32:5 f32:5x4",
                          "f32:4x5 f32:5",
                          "f32:5 f32:5",
                          "f32:5 f32:3x5x4",
                          "f32:3x4x5 f32:5",
                          "f32:0x5 f32:5x4",
                          "f32:4x0 f32:0x3",
                          "f32:2x0x5 f32:5x3",
                          "f32:128x256 f32:256x300!",
                          "f32:1x768 f32:768x1000!",
                          "f32:3x4 f32:4x5 nan=1",
                          "f64:9x9 f64:9x9",
                          "f16:9x17 f16:17x6",
                          "bf16:9x17 bf16:17x6",
                          "i32:5x6@-1000000..1000000 i32:6x7",
                          "i64:2x3 i64:3x2",
                          "u32:2x3={4000000000,1,2,3,4,5} u32:3x1={2,3,4}",
                          "u64:2x2 u64:2x2"}));
WHIMBREL_REGISTER(Kernel{.op = "MatMul", .name = "reference", .workspace = Workspace, .run = Run});

}  // namespace
}  // namespace whimbrel
