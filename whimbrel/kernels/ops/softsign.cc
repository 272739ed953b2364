// Softsign: y = x / (1 + |x|)
//
// in   input  f32 | f64 | f16 | bf16
// out  output  like input
// Source: ONNX operator Softsign (1, 22).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  UnaryReference<kFloatTypes>(call, [](double x) { return x / (1 + std::abs(x)); });
}

WHIMBREL_REGISTER(MakeSchema({.name = "Softsign",
                              .since = 1,
                              .until = 22,
                              .types = kFloatTypesTo12,
                              .inputs = {"input"},
                              .output = "output",
                              .samples = {"f32:3x4 opset=7", "f16:5", "f64:2"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "Softsign",
                              .since = 22,
                              .types = kFloatTypes,
                              .inputs = {"input"},
                              .output = "output",
                              .samples = {"f32:3x16", "f32:1", "f32:", "f32:0x8", "f16:7x17",
                                          "bf16:7x17", "f64:3x5", "f32:1x64x40x40", "f32:8 nan=1",
                                          "f32:4={0,-0,3e38,-1e-30}"}}));
WHIMBREL_REGISTER(Kernel{.op = "Softsign", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
