// Gelu: y = x / 2 * (1 + erf(x / sqrt 2)), or x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
//
// in   X  f32 | f64 | f16 | bf16
// attr approximate  string, "none" (default: erf) or "tanh"
// out  Y  like X
// Source: ONNX operator Gelu (20).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  const std::string_view form = c.attrs().String("approximate", "none");
  if (form != "none" && form != "tanh") {
    c.Fail("approximate is \"" + std::string(form) + "\"", "it is none or tanh");
  }
  InferLikeFirst(c);
}

// 1 + erf(z) = erfc(-z) keeps the digits of the left tail.
void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  constexpr double kSqrtHalf = 0.70710678118654752440;
  constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
  if (call.attrs().String("approximate", "none") == "tanh") {
    UnaryReference<kFloatTypes>(call, [](double x) {
      return 0.5 * x * (1 + std::tanh(kSqrtTwoOverPi * (x + 0.044715 * x * x * x)));
    });
  } else {
    UnaryReference<kFloatTypes>(call, [](double x) { return 0.5 * x * std::erfc(-x * kSqrtHalf); });
  }
}

WHIMBREL_REGISTER(MakeSchema(
    {.name = "Gelu",
     .since = 20,
     .types = kFloatTypes,
     .attributes = {{"approximate", AttributeType::kString, false, "none (default) or tanh"}},
     .infer = Infer,
     .samples = {"f32:3x16", "f32:1", "f32:", "f32:0x8", "f16:7x17", "bf16:7x17", "f64:3x5",
                 "f32:1x64x40x40", "f32:8 nan=1", "f32:5={-3,-1,0,1,3}",
                 "f32:5={-3,-1,0,1,3} approximate=tanh", "f32:4={-30,-6,6,30}",
                 "f16:7x17 approximate=tanh"}}));
WHIMBREL_REGISTER(Kernel{.op = "Gelu", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
