// com.microsoft FusedMatMul: y = alpha op(A) op(B), op swapping the last two axes when asked to.
//
// in   A      [..., rows, depth]; transA: [..., depth, rows]  f32 | f64 | f16 | bf16
//      B      [..., depth, cols]; transB: [..., cols, depth]
// attr alpha  float, default 1; transA, transB  0 (default) or 1
//      transBatchA, transBatchB  only 0: the first axis as the row axis is not served
// out  Y      [..., rows, cols]
// Source: ONNX Runtime's operator com.microsoft.FusedMatMul (1). Our own FusedMatMul, of the fusion
// passes, is another operator: fused_mat_mul.cc.

#include "whimbrel/kernels/ops/matmul_common.h"

namespace whimbrel {
namespace {

bool Transposed(const Attributes& attributes, std::string_view name) {
  return attributes.Int(name, 0) != 0;
}

MatMulGeometry GeometryOf(const OpCall& call) {
  return MakeMatMulGeometry(call.schema->name, call.x(0).shape(), call.x(1).shape(),
                            Transposed(call.attrs(), "transA"), Transposed(call.attrs(), "transB"));
}

void Infer(InferContext& c) {
  for (std::string_view name : {"transBatchA", "transBatchB"}) {
    if (c.attrs().Int(name, 0) != 0) {
      throw Error(Code::kUnsupported,
                  std::string(c.schema().name) + ": " + std::string(name) + " is not served",
                  "export the model with a Transpose before the product");
    }
  }
  c.SetOut(0, c.in(0).dtype,
           InferMatMulDims(c, Transposed(c.attrs(), "transA"), Transposed(c.attrs(), "transB")));
}

Cost ProductCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops = 2 * GeometryOf(call).macs();
  return cost;
}

size_t Workspace(const OpCall& call) {
  return WidenedBytes(call.x(0)) + WidenedBytes(call.x(1));
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  const double alpha = call.attrs().Float("alpha", 1);
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const auto* a = WidenInput<T>(call.x(0), workspace);
    const auto* b = WidenInput<T>(call.x(1), workspace);
    T* y = call.y(0).data<T>();
    MatMulReference(GeometryOf(call), a, b,
                    [y, alpha](int64_t at, int64_t /*row*/, int64_t /*column*/, auto sums) {
                      for (size_t j = 0; j < sums.size(); ++j)
                        y[at + static_cast<int64_t>(j)] = static_cast<T>(alpha * sums[j]);
                    });
  });
}

constexpr AttributeSpec Flag(std::string_view name, std::string_view note) {
  return {.name = name, .type = AttributeType::kInt, .note = note};
}

WHIMBREL_REGISTER(OpSchema{
    .name = "FusedMatMul",
    .domain = "com.microsoft",
    .inputs = {{.name = "A", .types = kFloatTypes, .group = 1},
               {.name = "B", .types = kFloatTypes, .group = 1}},
    .outputs = {{.name = "Y", .types = kFloatTypes, .group = 1}},
    .attributes = {{.name = "alpha", .type = AttributeType::kFloat, .note = "default 1"},
                   Flag("transA", "1: A is [..., depth, rows]"),
                   Flag("transB", "1: B is [..., cols, depth]"),
                   Flag("transBatchA", "only 0"),
                   Flag("transBatchB", "only 0")},
    .infer = Infer,
    .cost = ProductCost,
    .samples = {"f32:32x64 f32:64x48! alpha=0.125", "f32:1x1 f32:1x1",
                "f32:2x3x7x8 f32:2x3x9x8 transB=1 alpha=0.5", "f32:2x8x7 f32:8x9 transA=1",
                "f32:0x5 f32:5x4", "f32:3x4 f32:4x5 nan=1", "f64:9x9 f64:9x9 transA=1 transB=1",
                "f16:9x17 f16:17x6", "bf16:9x17 bf16:6x17 transB=1"},
    .matrix_op = true,
    .doc = "batched matrix product with a factor"});
WHIMBREL_REGISTER(Kernel{.op = "FusedMatMul",
                         .domain = "com.microsoft",
                         .name = "reference",
                         .workspace = Workspace,
                         .run = Run});

}  // namespace
}  // namespace whimbrel
