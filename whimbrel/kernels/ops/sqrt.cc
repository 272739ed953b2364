// Sqrt: y = the square root of x; NaN below 0
//
// in   X  f32 | f64 | f16 | bf16
// out  Y  like X
// Source: ONNX operator Sqrt (6, 13).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  UnaryReference<kFloatTypes>(call, [](double x) { return std::sqrt(x); });
}

WHIMBREL_REGISTER(MakeSchema({.name = "Sqrt",
                              .since = 6,
                              .until = 13,
                              .types = kFloatTypesTo12,
                              .samples = {"f32:3x4@0..9", "f16:5@0..9", "f64:2@0..9"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "Sqrt",
                              .since = 13,
                              .types = kFloatTypes,
                              .samples = {"f32:3x16@0..9", "f32:1@0..9", "f32:@0..9", "f32:0x8",
                                          "f16:7x17@0..9", "bf16:7x17@0..9", "f64:3x5@0..9",
                                          "f32:1x64x40x40@0..9", "f32:8 nan=1",
                                          "f32:4={0,-0,-1,1e-45}"}}));
WHIMBREL_REGISTER(Kernel{.op = "Sqrt", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
