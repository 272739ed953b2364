// Abs: y = |x|; the smallest integer wraps to itself
//
// in   X  numeric
// out  Y  like X
// Source: ONNX operator Abs (6, 13).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  UnaryReference<kNumericTypes>(call, [](auto x) {
    using W = decltype(x);
    if constexpr (std::is_integral_v<W>) {
      return IsNegative(x) ? WrapSub(W{0}, x) : x;
    } else {
      return std::abs(x);
    }
  });
}

WHIMBREL_REGISTER(MakeSchema({.name = "Abs",
                              .since = 6,
                              .until = 13,
                              .types = kNumericTypesTo12,
                              .samples = {"f32:3x4", "f16:5", "i32:4@-9..9", "u8:5"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "Abs",
                              .since = 13,
                              .types = kNumericTypes,
                              .samples = {"f32:3x16", "f32:1", "f32:", "f32:0x8", "f16:7x17",
                                          "bf16:7x17", "f64:3x5", "f32:1x64x40x40", "f32:8 nan=1",
                                          "f32:3={-0,0,-1e-45}", "i8:3={-128,127,-1}",
                                          "i16:9@-99..99", "i32:9@-99..99", "i64:9@-99..99", "u8:9",
                                          "u16:9", "u32:9", "u64:9"}}));
WHIMBREL_REGISTER(Kernel{.op = "Abs", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
