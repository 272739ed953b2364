// Erf: y = 2 / sqrt(pi) * the integral of e^(-t^2) for t from 0 to x
//
// in   input  f32 | f64 | f16 | bf16 (before 13: any number; integers are cut)
// out  output  like input
// Source: ONNX operator Erf (9, 13).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  UnaryReference<kNumericTypes>(
      call, [](auto x) { return static_cast<decltype(x)>(std::erf(static_cast<double>(x))); });
}

WHIMBREL_REGISTER(MakeSchema({.name = "Erf",
                              .since = 9,
                              .until = 13,
                              .types = kNumericTypesTo12,
                              .inputs = {"input"},
                              .output = "output",
                              .samples = {"f32:3x4", "f16:5", "f64:2", "i32:3={-9,0,9}"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "Erf",
                              .since = 13,
                              .types = kFloatTypes,
                              .inputs = {"input"},
                              .output = "output",
                              .samples = {"f32:3x16", "f32:1", "f32:", "f32:0x8", "f16:7x17",
                                          "bf16:7x17", "f64:3x5", "f32:1x64x40x40",
                                          "f32:8 nan=1"}}));
WHIMBREL_REGISTER(Kernel{.op = "Erf", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
