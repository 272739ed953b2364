// HardSigmoid: y = min(max(alpha * x + beta, 0), 1)
//
// in   X  f32 | f64 | f16 | bf16
// attr alpha  float, default 0.2
//      beta   float, default 0.5
// out  Y  like X
// Source: ONNX operator HardSigmoid (6, 22).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const double alpha = call.attrs().Float("alpha", 0.2F);
  const double beta = call.attrs().Float("beta", 0.5F);
  UnaryReference<kFloatTypes>(call, [=](double x) { return Clamp(alpha * x + beta, 0.0, 1.0); });
}

WHIMBREL_REGISTER(MakeSchema({.name = "HardSigmoid",
                              .since = 6,
                              .until = 22,
                              .types = kFloatTypesTo12,
                              .attributes = {{"alpha", AttributeType::kFloat, false, "default 0.2"},
                                             {"beta", AttributeType::kFloat, false, "default 0.5"}},
                              .samples = {"f32:3x4", "f16:5", "f64:2"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "HardSigmoid",
                              .since = 22,
                              .types = kFloatTypes,
                              .attributes = {{"alpha", AttributeType::kFloat, false, "default 0.2"},
                                             {"beta", AttributeType::kFloat, false, "default 0.5"}},
                              .samples = {"f32:3x16@-5..5", "f32:1", "f32:", "f32:0x8", "f16:7x17",
                                          "bf16:7x17", "f64:3x5", "f32:1x64x40x40", "f32:8 nan=1",
                                          "f32:3={-0,0,-1e-45}", "f32:3x5 alpha=0.5 beta=0.6",
                                          "f16:9 alpha=0.16666667"}}));
WHIMBREL_REGISTER(Kernel{.op = "HardSigmoid", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
