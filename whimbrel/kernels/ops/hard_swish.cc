// HardSwish: y = x * min(max(x / 6 + 0.5, 0), 1)
//
// in   X  f32 | f64 | f16 | bf16
// out  Y  like X
// Source: ONNX operator HardSwish (14, 22), Howard et al. 2019 (MobileNetV3).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  UnaryReference<kFloatTypes>(call, [](double x) { return x * Clamp(x / 6 + 0.5, 0.0, 1.0); });
}

WHIMBREL_REGISTER(MakeSchema({.name = "HardSwish",
                              .since = 14,
                              .until = 22,
                              .types = kFloatTypesTo12,
                              .samples = {"f32:3x4", "f16:5", "f64:2"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "HardSwish",
                              .since = 22,
                              .types = kFloatTypes,
                              .samples = {"f32:3x16@-5..5", "f32:1", "f32:", "f32:0x8", "f16:7x17",
                                          "bf16:7x17", "f64:3x5", "f32:1x64x40x40", "f32:8 nan=1",
                                          "f32:3={-0,0,-1e-45}", "f32:4={-3,3,-3.0000002,100}"}}));
WHIMBREL_REGISTER(Kernel{.op = "HardSwish", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
