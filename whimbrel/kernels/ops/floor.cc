// Floor: y = the largest integer not above x
//
// in   X  f32 | f64 | f16 | bf16
// out  Y  like X
// Source: ONNX operator Floor (6, 13).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  UnaryReference<kFloatTypes>(call, [](double x) { return std::floor(x); });
}

WHIMBREL_REGISTER(MakeSchema({.name = "Floor",
                              .since = 6,
                              .until = 13,
                              .types = kFloatTypesTo12,
                              .samples = {"f32:3x4@-9..9", "f16:5@-9..9", "f64:2@-9..9"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "Floor",
                              .since = 13,
                              .types = kFloatTypes,
                              .samples = {"f32:3x16@-9..9", "f32:1@-9..9", "f32:@-9..9", "f32:0x8",
                                          "f16:7x17@-9..9", "bf16:7x17@-9..9", "f64:3x5@-9..9",
                                          "f32:1x64x40x40@-9..9", "f32:8 nan=1",
                                          "f32:5={-0.5,0.5,-0,16777217,-1.5}"}}));
WHIMBREL_REGISTER(Kernel{.op = "Floor", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
