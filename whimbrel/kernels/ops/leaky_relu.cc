// LeakyRelu: y = x for x >= 0, alpha * x below
//
// in   X  f32 | f64 | f16 | bf16
// attr alpha  float, default 0.01
// out  Y  like X
// Source: ONNX operator LeakyRelu (6, 16).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const double alpha = call.attrs().Float("alpha", 0.01F);
  UnaryReference<kFloatTypes>(call, [alpha](double x) { return x < 0 ? alpha * x : x; });
}

WHIMBREL_REGISTER(MakeSchema({.name = "LeakyRelu",
                              .since = 6,
                              .until = 16,
                              .types = kFloatTypesTo12,
                              .attributes = {{"alpha", AttributeType::kFloat, false,
                                              "default 0.01: slope below zero"}},
                              .samples = {"f32:3x4", "f16:5", "f64:2"}}));
WHIMBREL_REGISTER(MakeSchema(
    {.name = "LeakyRelu",
     .since = 16,
     .types = kFloatTypes,
     .attributes = {{"alpha", AttributeType::kFloat, false, "default 0.01: slope below zero"}},
     .samples = {"f32:3x16", "f32:1", "f32:", "f32:0x8", "f16:7x17", "bf16:7x17", "f64:3x5",
                 "f32:1x64x40x40", "f32:8 nan=1", "f32:3={-0,0,-1e-45}", "f32:3x5 alpha=0.2",
                 "f32:9 alpha=-1", "f32:5 alpha=0"}}));
WHIMBREL_REGISTER(Kernel{.op = "LeakyRelu", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
