// Log: y = ln x; NaN below 0, -inf at 0
//
// in   input  f32 | f64 | f16 | bf16
// out  output  like input
// Source: ONNX operator Log (6, 13).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  UnaryReference<kFloatTypes>(call, [](double x) { return std::log(x); });
}

WHIMBREL_REGISTER(MakeSchema({.name = "Log",
                              .since = 6,
                              .until = 13,
                              .types = kFloatTypesTo12,
                              .inputs = {"input"},
                              .output = "output",
                              .samples = {"f32:3x4@0.01..9", "f16:5@0.01..9", "f64:2@0.01..9"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "Log",
                              .since = 13,
                              .types = kFloatTypes,
                              .inputs = {"input"},
                              .output = "output",
                              .samples = {"f32:3x16@0.01..9", "f32:1@0.01..9", "f32:@0.01..9",
                                          "f32:0x8", "f16:7x17@0.01..9", "bf16:7x17@0.01..9",
                                          "f64:3x5@0.01..9", "f32:1x64x40x40@0.01..9",
                                          "f32:8 nan=1", "f32:4={0,-0,-1,1e-45}"}}));
WHIMBREL_REGISTER(Kernel{.op = "Log", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
