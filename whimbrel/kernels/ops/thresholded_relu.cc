// ThresholdedRelu: y = x for x > alpha, else 0
//
// in   X  f32 | f64 | f16 | bf16
// attr alpha  float, default 1
// out  Y  like X
// NaN is not above alpha: 0.
// Source: ONNX operator ThresholdedRelu (10, 22).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const double alpha = call.attrs().Float("alpha", 1);
  UnaryReference<kFloatTypes>(call, [alpha](double x) { return x > alpha ? x : 0; });
}

WHIMBREL_REGISTER(MakeSchema({.name = "ThresholdedRelu",
                              .since = 10,
                              .until = 22,
                              .types = kFloatTypesTo12,
                              .attributes = {{"alpha", AttributeType::kFloat, false, "default 1"}},
                              .samples = {"f32:3x4", "f16:5", "f64:2"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "ThresholdedRelu",
                              .since = 22,
                              .types = kFloatTypes,
                              .attributes = {{"alpha", AttributeType::kFloat, false, "default 1"}},
                              .samples = {"f32:3x16", "f32:1", "f32:", "f32:0x8", "f16:7x17",
                                          "bf16:7x17", "f64:3x5", "f32:1x64x40x40", "f32:8 nan=1",
                                          "f32:3x5 alpha=0.5", "f32:3x5 alpha=-1",
                                          "f32:3={1,0.99999994,1.0000001}"}}));
WHIMBREL_REGISTER(Kernel{.op = "ThresholdedRelu", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
