// Mish: y = x * tanh(ln(1 + e^x))
//
// in   X  f32 | f64 | f16 | bf16
// out  Y  like X
// Source: ONNX operator Mish (18, 22).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  UnaryReference<kFloatTypes>(call, [](double x) {
    const double softplus = x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
    return x * std::tanh(softplus);
  });
}

WHIMBREL_REGISTER(MakeSchema({.name = "Mish",
                              .since = 18,
                              .until = 22,
                              .types = kFloatTypesTo12,
                              .samples = {"f32:3x4", "f16:5", "f64:2"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "Mish",
                              .since = 22,
                              .types = kFloatTypes,
                              .samples = {"f32:3x16", "f32:1", "f32:", "f32:0x8", "f16:7x17",
                                          "bf16:7x17", "f64:3x5", "f32:1x64x40x40", "f32:8 nan=1",
                                          "f32:5={-1000,-40,0,40,1000}"}}));
WHIMBREL_REGISTER(Kernel{.op = "Mish", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
