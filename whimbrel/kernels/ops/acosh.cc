// Acosh: y = ln(x + sqrt(x^2 - 1)), the inverse of cosh; NaN below 1
//
// in   input  f32 | f64 | f16 | bf16
// out  output  like input
// Source: ONNX operator Acosh (9, 22).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  UnaryReference<kFloatTypes>(call, [](double x) { return std::acosh(x); });
}

WHIMBREL_REGISTER(MakeSchema({.name = "Acosh",
                              .since = 9,
                              .until = 22,
                              .types = kFloatTypesTo12,
                              .inputs = {"input"},
                              .output = "output",
                              .samples = {"f32:3x4@1..9", "f16:5@1..9", "f64:2@1..9"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "Acosh",
                              .since = 22,
                              .types = kFloatTypes,
                              .inputs = {"input"},
                              .output = "output",
                              .samples = {"f32:3x16@1..9", "f32:1@1..9", "f32:@1..9",
                                          "f32:0x8@1..9", "f16:7x17@1..9", "bf16:7x17@1..9",
                                          "f64:3x5@1..9", "f32:1x64x40x40@1..9", "f32:8 nan=1",
                                          "f32:4={1,0.99,1e30,-3}"}}));
WHIMBREL_REGISTER(Kernel{.op = "Acosh", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
