// Celu: y = max(0, x) + min(0, alpha * (e^(x / alpha) - 1))
//
// in   X  f32, from 28 also f64 | f16 | bf16
// attr alpha  float, default 1, not 0
// out  Y  like X
// Source: ONNX operator Celu (12, 28).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  if (c.attrs().Float("alpha", 1) == 0) c.Fail("alpha is 0", "x is divided by alpha");
  InferLikeFirst(c);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const double alpha = call.attrs().Float("alpha", 1);
  UnaryReference<kFloatTypes>(call, [alpha](double x) {
    if (std::isnan(x)) return x;
    const double curve = alpha * std::expm1(x / alpha);
    return (x > 0 ? x : 0) + (curve < 0 ? curve : 0);
  });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return MakeSchema({.name = "Celu",
                     .since = since,
                     .until = until,
                     .types = types,
                     .attributes = {{"alpha", AttributeType::kFloat, false, "default 1, not 0"}},
                     .infer = Infer,
                     .samples = std::move(samples)});
}

WHIMBREL_REGISTER(Schema(12, 28, TypeBit(DType::kFloat), {"f32:3x4", "f32:5 alpha=2"}));
WHIMBREL_REGISTER(Schema(28, INT_MAX, kFloatTypes,
                         {"f32:3x16", "f32:1", "f32:", "f32:0x8", "f16:7x17", "bf16:7x17",
                          "f64:3x5", "f32:1x64x40x40", "f32:8 nan=1", "f32:3x5 alpha=0.5",
                          "f32:3x5 alpha=-0.5", "f32:5={-1000,-1e-20,-0,0,1000}"}));
WHIMBREL_REGISTER(Kernel{.op = "Celu", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
