// RMSNormalization: y[r, e] = x[r, e] / sqrt(mean over e of x[r, e]^2 + epsilon) * scale[e], rows
// over dims [axis, rank).
//
// in   X       any rank >= 1  f32 | f64 | f16 | bf16
//      scale   broadcastable to the dims of a row; any float type
// attr axis    int, default -1; epsilon  float, default 1e-5, added to the mean square
//      stash_type  of the sums: 1 = f32 (default), 16 = bf16; they are in double here
// out  Y       dims of X, type of scale
// Source: ONNX operator RMSNormalization (23); Zhang & Sennrich 2019.

#include "whimbrel/kernels/ops/norm_common.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  const int64_t stash = c.attrs().Int("stash_type", 1);
  if (stash != 1 && stash != 10 && stash != 11 && stash != 16) {
    c.Fail("stash_type is a float type, is " + std::to_string(stash));
  }
  if (c.in(0).dims) {
    const int axis = NormalizeAxis(c.attrs().Int("axis", -1), c.in(0).rank(), c.schema().name);
    CheckRowParameter(c, 1, *c.in(0).dims, axis);
  }
  c.SetOut(0, c.in(1).dtype, c.in(0).dims);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    DispatchReference<kFloatTypes>(call, call.x(1).dtype(), [&]<typename V>() {
      NormalizeRootMeanSquare<T, V>(call, [](int64_t /*row*/, double /*inverse*/) {});
    });
  });
}

WHIMBREL_REGISTER(OpSchema{
    .name = "RMSNormalization",
    .since = 23,
    .inputs = {{.name = "X", .types = kFloatTypes},
               {.name = "scale", .types = kFloatTypes, .group = 1}},
    .outputs = {{.name = "Y", .types = kFloatTypes, .group = 1}},
    .attributes = {{.name = "axis",
                    .type = AttributeType::kInt,
                    .note = "default -1; a row is all dims from it on"},
                   {.name = "epsilon",
                    .type = AttributeType::kFloat,
                    .note = "default 1e-5, added to the mean square"},
                   {.name = "stash_type",
                    .type = AttributeType::kInt,
                    .note = "type of the sums, default 1 = f32"}},
    .infer = Infer,
    .cost = NormCost,
    .samples = {"f32:4x768 f32:768!", "f32:1x1 f32:1!", "f32:3x7x17 f32:17!",
                "f32:2x3x4x5 f32:4x5! axis=2", "f32:2x3x4 f32:4! axis=1 epsilon=1e-3",
                "f32:5 f32:5! axis=0", "f32:0x8 f32:8!", "f32:128x1024 f32:1024!",
                "f32:2x8 f32:8! nan=1", "f32:1x8@0..0 f32:8!", "f64:3x9 f64:9!", "f16:3x40 f16:40!",
                "f16:1x4={60000,-60000,30000,-30000} f16:4@1..1!", "bf16:3x40 bf16:40!",
                "f16:3x5 f32:5!"},
    .doc = "unit mean square for each row"});
WHIMBREL_REGISTER(Kernel{.op = "RMSNormalization", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
