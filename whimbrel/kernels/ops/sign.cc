// Sign: y = 1, 0 or -1 as x is above, equal to or below 0; NaN stays NaN.
//
// in   input  numeric
// out  output  like input; both zeros give +0
// Source: ONNX operator Sign (9, 13).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  UnaryReference<kNumericTypes>(call, [](auto x) {
    using W = decltype(x);
    if (x > 0) return W{1};
    if (IsNegative(x)) return static_cast<W>(-1);
    return x == 0 ? W{0} : x;
  });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return MakeSchema({.name = "Sign",
                     .since = since,
                     .until = until,
                     .types = types,
                     .inputs = {"input"},
                     .output = "output",
                     .samples = std::move(samples)});
}

WHIMBREL_REGISTER(Schema(9, 13, kNumericTypesTo12, {"f32:3x4", "f16:5", "i8:5@-3..3"}));
WHIMBREL_REGISTER(Schema(13, INT_MAX, kNumericTypes,
                         {"f32:3x16", "f32:1", "f32:", "f32:0x8", "f16:7x17", "bf16:7x17",
                          "f64:3x5", "f32:1x64x40x40", "f32:8 nan=1", "f32:4={0,-0,-1e-45,1e-45}",
                          "i64:5@-2..2", "i32:5@-2..2", "u8:5@0..2", "u64:5@0..2", "i16:5@-2..2",
                          "i8:3={-128,0,127}"}));
WHIMBREL_REGISTER(Kernel{.op = "Sign", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
