// PRelu: y = x for x >= 0, slope * x below; slope is broadcast to x, never the other way.
//
// in   X      float types, from 9 also i32 | i64 | u32 | u64
//      slope  like X, its shape broadcastable to that of X
// out  Y      like X
// Source: He et al. 2015; ONNX operator PRelu (7, 9, 16).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  InferLikeFirst(c);
  if (!c.in(0).dims || !c.in(1).dims) return;
  const Dims& x = *c.in(0).dims;
  const Dims& slope = *c.in(1).dims;
  bool fits = slope.size() <= x.size();
  for (size_t i = 0; fits && i < slope.size(); ++i) {
    const Dim& d = x[x.size() - slope.size() + i];
    fits = slope[i].Is(1) || !slope[i].known() || !d.known() || slope[i].Is(d.value());
  }
  if (!fits) {
    c.Fail("slope " + ToString(slope) + " does not broadcast to X " + ToString(x),
           "one slope per channel of [N, C, H, W] has the shape [C, 1, 1]");
  }
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  BinaryReference<kFloatTypes | kWideIntegerTypes>(call, [](auto x, auto slope) {
    if constexpr (std::is_integral_v<decltype(x)>) {
      return IsNegative(x) ? WrapMul(x, slope) : x;
    } else {
      return x < 0 ? x * slope : x;
    }
  });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return MakeSchema({.name = "PRelu",
                     .since = since,
                     .until = until,
                     .types = types,
                     .inputs = {"X", "slope"},
                     .infer = Infer,
                     .samples = std::move(samples)});
}

WHIMBREL_REGISTER(Schema(7, 9, kFloatTypesTo12, {"f32:3x4 f32:4", "f16:5 f16:1"}));
WHIMBREL_REGISTER(Schema(9, 16, kFloatTypesTo12 | kWideIntegerTypes,
                         {"f32:3x4 f32:4", "i32:5@-9..9 i32:1", "u32:5 u32:5"}));
WHIMBREL_REGISTER(Schema(16, INT_MAX, kFloatTypes | kWideIntegerTypes,
                         {"f32:3x16 f32:3x16", "f32:2x3x5x7 f32:3x1x1", "f32: f32:",
                          "f32:0x3 f32:3", "f32:1 f32:1", "f32:4x5 f32:", "f16:7x17 f16:17",
                          "bf16:5x9 bf16:5x1", "f64:3x3 f64:1x3", "i32:9@-9..9 i32:9",
                          "i64:9@-9..9 i64:1", "u64:9 u64:1", "f32:1x64x40x40 f32:64x1x1",
                          "f32:8 f32:1 nan=1", "f32:4={-0,0,-inf,-1} f32:1={0}"}));
WHIMBREL_REGISTER(Kernel{.op = "PRelu", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
