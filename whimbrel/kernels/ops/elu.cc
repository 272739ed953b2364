// Elu: y = x for x >= 0, alpha * (e^x - 1) below
//
// in   X  f32 | f64 | f16 | bf16
// attr alpha  float, default 1
// out  Y  like X
// Source: ONNX operator Elu (6, 22).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const double alpha = call.attrs().Float("alpha", 1);
  UnaryReference<kFloatTypes>(call,
                              [alpha](double x) { return x < 0 ? alpha * std::expm1(x) : x; });
}

WHIMBREL_REGISTER(MakeSchema({.name = "Elu",
                              .since = 6,
                              .until = 22,
                              .types = kFloatTypesTo12,
                              .attributes = {{"alpha", AttributeType::kFloat, false, "default 1"}},
                              .samples = {"f32:3x4", "f16:5 alpha=2", "f64:2"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "Elu",
                              .since = 22,
                              .types = kFloatTypes,
                              .attributes = {{"alpha", AttributeType::kFloat, false, "default 1"}},
                              .samples = {"f32:3x16", "f32:1", "f32:", "f32:0x8", "f16:7x17",
                                          "bf16:7x17", "f64:3x5", "f32:1x64x40x40", "f32:8 nan=1",
                                          "f32:3x5 alpha=0.5", "f32:5={-1000,-1e-20,-0,0,1000}"}}));
WHIMBREL_REGISTER(Kernel{.op = "Elu", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
