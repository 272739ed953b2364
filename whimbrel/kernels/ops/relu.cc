// Relu: y = max(x, 0); NaN stays NaN
//
// in   X  f32 | f64 | f16 | bf16, from 14 also signed integers
// out  Y  like X
// Source: ONNX operator Relu (6, 13, 14).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  UnaryReference<kFloatTypes | kSignedTypes>(call,
                                             [](auto x) { return x < 0 ? decltype(x){0} : x; });
}

WHIMBREL_REGISTER(MakeSchema({.name = "Relu",
                              .since = 6,
                              .until = 13,
                              .types = kFloatTypesTo12,
                              .samples = {"f32:3x4", "f16:5", "f64:2"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "Relu",
                              .since = 13,
                              .until = 14,
                              .types = kFloatTypes,
                              .samples = {"f32:3x4", "f16:5", "f64:2"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "Relu",
                              .since = 14,
                              .types = kFloatTypes | kSignedTypes,
                              .samples = {"f32:3x16", "f32:1", "f32:", "f32:0x8", "f16:7x17",
                                          "bf16:7x17", "f64:3x5", "f32:1x64x40x40", "f32:8 nan=1",
                                          "f32:3={-0,0,-1e-45}", "i8:3={-128,127,-1}",
                                          "i16:9@-99..99", "i32:9@-99..99", "i64:9@-99..99"}}));
WHIMBREL_REGISTER(Kernel{.op = "Relu", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
