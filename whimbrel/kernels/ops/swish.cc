// Swish: y = x / (1 + e^(-alpha * x))
//
// in   X  f32 | f64 | f16 | bf16
// attr alpha  float, default 1
// out  Y  like X
// Source: ONNX operator Swish (24).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const double alpha = call.attrs().Float("alpha", 1);
  UnaryReference<kFloatTypes>(call, [alpha](double x) { return x / (1 + std::exp(-alpha * x)); });
}

WHIMBREL_REGISTER(MakeSchema({.name = "Swish",
                              .since = 24,
                              .types = kFloatTypes,
                              .attributes = {{"alpha", AttributeType::kFloat, false, "default 1"}},
                              .samples = {"f32:3x16", "f32:1", "f32:", "f32:0x8", "f16:7x17",
                                          "bf16:7x17", "f64:3x5", "f32:1x64x40x40", "f32:8 nan=1",
                                          "f32:3x5 alpha=0.5", "f32:4={-1000,-20,20,1000}",
                                          "f16:9 alpha=-1.5"}}));
WHIMBREL_REGISTER(Kernel{.op = "Swish", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
