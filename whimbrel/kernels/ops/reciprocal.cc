// Reciprocal: y = 1 / x
//
// in   X  f32 | f64 | f16 | bf16
// out  Y  like X
// Source: ONNX operator Reciprocal (6, 13).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  UnaryReference<kFloatTypes>(call, [](double x) { return 1 / x; });
}

WHIMBREL_REGISTER(MakeSchema({.name = "Reciprocal",
                              .since = 6,
                              .until = 13,
                              .types = kFloatTypesTo12,
                              .samples = {"f32:3x4@0.1..9", "f16:5@0.1..9", "f64:2@0.1..9"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "Reciprocal",
                              .since = 13,
                              .types = kFloatTypes,
                              .samples = {"f32:3x16@0.1..9", "f32:1@0.1..9", "f32:@0.1..9",
                                          "f32:0x8", "f16:7x17@0.1..9", "bf16:7x17@0.1..9",
                                          "f64:3x5@0.1..9", "f32:1x64x40x40@0.1..9", "f32:8 nan=1",
                                          "f32:4={0,-0,-3,1e-40}"}}));
WHIMBREL_REGISTER(Kernel{.op = "Reciprocal", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
