// Round: y = the nearest whole number, of two equally near the even one
//
// in   X  f32 | f64 | f16 | bf16
// out  Y  like X
// The sign of zero stays: -0.4 gives -0.
// Source: ONNX operator Round (11, 22).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  UnaryReference<kFloatTypes>(call, [](double x) { return std::nearbyint(x); });
}

WHIMBREL_REGISTER(MakeSchema({.name = "Round",
                              .since = 11,
                              .until = 22,
                              .types = kFloatTypesTo12,
                              .samples = {"f32:3x4@-9..9", "f16:5@-9..9", "f64:2@-9..9"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "Round",
                              .since = 22,
                              .types = kFloatTypes,
                              .samples = {"f32:3x16@-9..9", "f32:1@-9..9", "f32:@-9..9",
                                          "f32:0x8@-9..9", "f16:7x17@-9..9", "bf16:7x17@-9..9",
                                          "f64:3x5@-9..9", "f32:1x64x40x40@-9..9", "f32:8 nan=1",
                                          "f32:8={0.5,1.5,2.5,-0.5,-1.5,-2.5,0.49999997,8388609}",
                                          "f16:4={2.5,3.5,-0.25,2047}"}}));
WHIMBREL_REGISTER(Kernel{.op = "Round", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
