// Sigmoid: y = 1 / (1 + e^-x)
//
// in   X  f32 | f64 | f16 | bf16
// out  Y  like X
// Source: ONNX operator Sigmoid (6, 13).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  // The exponent is never positive, so that nothing overflows on either side.
  UnaryReference<kFloatTypes>(call, [](double x) {
    return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
  });
}

WHIMBREL_REGISTER(MakeSchema({.name = "Sigmoid",
                              .since = 6,
                              .until = 13,
                              .types = kFloatTypesTo12,
                              .samples = {"f32:3x4", "f16:5", "f64:2"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "Sigmoid",
                              .since = 13,
                              .types = kFloatTypes,
                              .samples = {"f32:3x16", "f32:1", "f32:", "f32:0x8", "f16:7x17",
                                          "bf16:7x17", "f64:3x5", "f32:1x64x40x40", "f32:8 nan=1",
                                          "f64:4={-745,-1000,40,0}"}}));
WHIMBREL_REGISTER(Kernel{.op = "Sigmoid", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
