// Acos: y = arc cosine of x in [0, pi]; NaN outside [-1, 1]
//
// in   input  f32 | f64 | f16 | bf16
// out  output  like input
// Source: ONNX operator Acos (7, 22).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  UnaryReference<kFloatTypes>(call, [](double x) { return std::acos(x); });
}

WHIMBREL_REGISTER(MakeSchema({.name = "Acos",
                              .since = 7,
                              .until = 22,
                              .types = kFloatTypesTo12,
                              .inputs = {"input"},
                              .output = "output",
                              .samples = {"f32:3x4@-1..1", "f16:5@-1..1", "f64:2@-1..1"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "Acos",
                              .since = 22,
                              .types = kFloatTypes,
                              .inputs = {"input"},
                              .output = "output",
                              .samples = {"f32:3x16@-1..1", "f32:1@-1..1", "f32:@-1..1",
                                          "f32:0x8@-1..1", "f16:7x17@-1..1", "bf16:7x17@-1..1",
                                          "f64:3x5@-1..1", "f32:1x64x40x40@-1..1", "f32:8 nan=1",
                                          "f32:6={0,-0,1,-1,1.00001,-2}"}}));
WHIMBREL_REGISTER(Kernel{.op = "Acos", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
