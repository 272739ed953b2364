// SimplifiedLayerNormalization: RMSNormalization under the name that ONNX Runtime's exporters use.
//
// in   X       any rank >= 1  f32 | f64 | f16 | bf16
//      scale   broadcastable to the dims of a row, same type
// attr axis    int, default -1; epsilon  float, default 1e-5
//      stash_type  type of inv_std_var: 1 = f32 (default)
// out  Y       like X
//      inv_std_var  f32, dims of X with 1 from axis on, optional
// Source: ONNX Runtime's operator SimplifiedLayerNormalization (1), domain ai.onnx. Sums are in
// double, so that fp16 rows of large values do not become 0.

#include "whimbrel/kernels/ops/norm_common.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  if (c.attrs().Int("stash_type", 1) != 1) c.Fail("stash_type must be 1, float");
  std::optional<Dims> statistic;
  if (c.in(0).dims) {
    const int axis = NormalizeAxis(c.attrs().Int("axis", -1), c.in(0).rank(), c.schema().name);
    CheckRowParameter(c, 1, *c.in(0).dims, axis);
    statistic = RowStatistic(*c.in(0).dims, axis);
  }
  InferLikeFirst(c);
  c.SetOut(1, DType::kFloat, statistic);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  float* inverse = call.has_out(1) ? call.y(1).data<float>() : nullptr;
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    NormalizeRootMeanSquare<T, T>(call, [inverse](int64_t row, double value) {
      if (inverse != nullptr) inverse[row] = static_cast<float>(value);
    });
  });
}

WHIMBREL_REGISTER(OpSchema{
    .name = "SimplifiedLayerNormalization",
    .inputs = {{.name = "X", .types = kFloatTypes, .group = 1},
               {.name = "scale", .types = kFloatTypes, .group = 1}},
    .outputs = {{.name = "Y", .types = kFloatTypes, .group = 1},
                {.name = "inv_std_var", .types = TypeBit(DType::kFloat), .optional = true}},
    .attributes = {{.name = "axis", .type = AttributeType::kInt, .note = "default -1"},
                   {.name = "epsilon", .type = AttributeType::kFloat, .note = "default 1e-5"},
                   {.name = "stash_type", .type = AttributeType::kInt, .note = "1 = f32"}},
    .infer = Infer,
    .cost = NormCost,
    .samples = {"f32:4x768 f32:768!", "f32:1x1 f32:1!", "f32:2x3x4 f32:3x4! axis=1 outputs=2",
                "f32:0x8 f32:8!", "f16:1x4={60000,-60000,30000,-30000} f16:4@1..1! outputs=2",
                "bf16:3x40 bf16:40!", "f64:3x9 f64:9! epsilon=1e-3", "f32:2x8 f32:8! nan=1"},
    .doc = "unit mean square for each row"});
WHIMBREL_REGISTER(Kernel{.op = "SimplifiedLayerNormalization", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
