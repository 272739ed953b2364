// Atanh: y = ln((1 + x) / (1 - x)) / 2, the inverse of tanh; NaN outside [-1, 1]
//
// in   input  f32 | f64 | f16 | bf16
// out  output  like input
// Source: ONNX operator Atanh (9, 22).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  UnaryReference<kFloatTypes>(call, [](double x) { return std::atanh(x); });
}

WHIMBREL_REGISTER(MakeSchema({.name = "Atanh",
                              .since = 9,
                              .until = 22,
                              .types = kFloatTypesTo12,
                              .inputs = {"input"},
                              .output = "output",
                              .samples = {"f32:3x4@-0.99..0.99", "f16:5@-0.99..0.99",
                                          "f64:2@-0.99..0.99"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "Atanh",
                              .since = 22,
                              .types = kFloatTypes,
                              .inputs = {"input"},
                              .output = "output",
                              .samples = {"f32:3x16@-0.99..0.99", "f32:1@-0.99..0.99",
                                          "f32:@-0.99..0.99", "f32:0x8@-0.99..0.99",
                                          "f16:7x17@-0.99..0.99", "bf16:7x17@-0.99..0.99",
                                          "f64:3x5@-0.99..0.99", "f32:1x64x40x40@-0.99..0.99",
                                          "f32:8 nan=1", "f32:5={0,-0,1,-1,1.5}"}}));
WHIMBREL_REGISTER(Kernel{.op = "Atanh", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
