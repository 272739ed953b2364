// SkipSimplifiedLayerNormalization: s = input + skip + bias; y = s / sqrt(mean(s^2) + epsilon) *
// gamma, row by row.
//
// in   input   [batch, seq, hidden] or [rows, hidden]  f32 | f64 | f16 | bf16
//      skip    like input, or without the batch, or with 1 there
//      gamma, bias  [hidden]; bias optional
// attr epsilon float, default 1e-12
// out  output  like input
//      mean (0), inv_std_var  f32, input's dims with 1 for hidden; optional
//      input_skip_bias_sum    s, optional
// Source: ONNX Runtime's operator com.microsoft.SkipSimplifiedLayerNormalization (1).

#include "whimbrel/kernels/ops/skip_norm.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  RunSkipNorm(call, false);
}

WHIMBREL_REGISTER(SkipNormSchema(
    "SkipSimplifiedLayerNormalization", false,
    {"f32:2x5x64 f32:2x5x64 f32:64! f32:64! outputs=4", "f32:1x1x1 f32:1x1x1 f32:1!",
     "f32:3x5x7 f32:1x5x7 f32:7!", "f32:5x7 f32:5x7 f32:7! f32:7! epsilon=1e-5 outputs=4",
     "f32:0x5x7 f32:0x5x7 f32:7!",
     "f16:1x1x4={60000,-60000,30000,-30000} f16:1x1x4@0..0 f16:4@1..1! outputs=3",
     "bf16:2x3x9 bf16:2x3x9 bf16:9!", "f32:2x3x9 f32:2x3x9 f32:9! nan=1"}));
WHIMBREL_REGISTER(Kernel{.op = "SkipSimplifiedLayerNormalization",
                         .domain = "com.microsoft",
                         .name = "reference",
                         .run = Run});

}  // namespace
}  // namespace whimbrel
