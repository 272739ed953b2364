// Neg: y = -x; the smallest integer wraps to itself
//
// in   X  f32 | f64 | f16 | bf16 | signed integers
// out  Y  like X
// Source: ONNX operator Neg (6, 13).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  InferLikeFirst(c);
  auto elements = SmallElements(c, 0);
  if (!elements) return;
  for (Dim& d : *elements) d = FitElement(Dim(0) - d, c.in(0).dtype);
  c.out(0).elements = std::move(elements);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  UnaryReference<kFloatTypes | kSignedTypes>(call, [](auto x) {
    using W = decltype(x);
    if constexpr (std::is_integral_v<W>) {
      return WrapSub(W{0}, x);
    } else {
      return -x;
    }
  });
}

WHIMBREL_REGISTER(MakeSchema({.name = "Neg",
                              .since = 6,
                              .until = 13,
                              .types = kFloatTypesTo12 | kSignedTypes,
                              .infer = Infer,
                              .samples = {"f32:3x4", "f16:5", "i32:4@-9..9"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "Neg",
                              .since = 13,
                              .types = kFloatTypes | kSignedTypes,
                              .infer = Infer,
                              .samples = {"f32:3x16", "f32:1", "f32:", "f32:0x8", "f16:7x17",
                                          "bf16:7x17", "f64:3x5", "f32:1x64x40x40", "f32:8 nan=1",
                                          "f32:3={-0,0,-1e-45}", "i8:3={-128,127,-1}",
                                          "i16:9@-99..99", "i32:9@-99..99", "i64:9@-99..99"}}));
WHIMBREL_REGISTER(Kernel{.op = "Neg", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
