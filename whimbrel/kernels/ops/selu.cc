// Selu: y = gamma * x for x > 0, gamma * alpha * (e^x - 1) else
//
// in   X  f32 | f64 | f16 | bf16
// attr alpha  float, default 1.67326319
//      gamma  float, default 1.05070102
// out  Y  like X
// Source: ONNX operator Selu (6, 22).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

constexpr double kAlpha = 1.67326319217681884765625F;
constexpr double kGamma = 1.05070102214813232421875F;

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const double alpha = call.attrs().Float("alpha", kAlpha);
  const double gamma = call.attrs().Float("gamma", kGamma);
  UnaryReference<kFloatTypes>(
      call, [=](double x) { return gamma * (x > 0 ? x : alpha * std::expm1(x)); });
}

WHIMBREL_REGISTER(
    MakeSchema({.name = "Selu",
                .since = 6,
                .until = 22,
                .types = kFloatTypesTo12,
                .attributes = {{"alpha", AttributeType::kFloat, false, "default 1.67326319"},
                               {"gamma", AttributeType::kFloat, false, "default 1.05070102"}},
                .samples = {"f32:3x4", "f16:5 alpha=2", "f64:2 gamma=0.5"}}));
WHIMBREL_REGISTER(
    MakeSchema({.name = "Selu",
                .since = 22,
                .types = kFloatTypes,
                .attributes = {{"alpha", AttributeType::kFloat, false, "default 1.67326319"},
                               {"gamma", AttributeType::kFloat, false, "default 1.05070102"}},
                .samples = {"f32:3x16", "f32:1", "f32:", "f32:0x8", "f16:7x17", "bf16:7x17",
                            "f64:3x5", "f32:1x64x40x40", "f32:8 nan=1", "f32:3x5 alpha=2 gamma=3",
                            "f32:5={-1000,-1e-20,-0,0,1000}"}}));
WHIMBREL_REGISTER(Kernel{.op = "Selu", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
