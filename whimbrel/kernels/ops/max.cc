// Max: y = the largest of the inputs, all broadcast; NaN if any of them is.
//
// in   data  one or more, numeric (before 12 float types), one type
// out  max  like data
// Source: ONNX operator Max (6, 8, 12, 13).

#include "whimbrel/kernels/ops/extremes.h"

namespace whimbrel {
namespace {

Dim LargerElement(const Dim& a, const Dim& b) {
  if (a.Same(b)) return a;
  return a.known() && b.known() ? Dim(std::max(a.value(), b.value())) : Dim();
}

void Infer(InferContext& c) {
  InferArithmetic(c, LargerElement);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  // A NaN on either side is kept: every comparison with it is false.
  VariadicReference<kNumericTypes>(call, [](auto a, auto b) {
    if constexpr (std::is_floating_point_v<decltype(a)>) {
      if (std::isnan(a)) return a;
    }
    return a > b ? a : b;
  });
}

WHIMBREL_REGISTER(ExtremeSchema("Max", "max", 6, Infer,
                                {"f32:3x4 f32:3x4 f32:3x4", "f16:5", "f64:2 f64:2"}));
WHIMBREL_REGISTER(ExtremeSchema("Max", "max", 8, Infer,
                                {"f32:3x4 f32:4 f32:", "f16:5 f16:1", "f64:2 f64:2"}));
WHIMBREL_REGISTER(ExtremeSchema("Max", "max", 12, Infer,
                                {"f32:3x4 f32:4", "i64:5 i64:5", "u8:4 u8:1"}));
WHIMBREL_REGISTER(ExtremeSchema("Max", "max", 13, Infer,
                                {"f32:3x16 f32:3x16",
                                 "f32:2x3x5 f32:3x1 f32:5 f32:",
                                 "f32:4",
                                 "f32: f32:4",
                                 "f32:0x3 f32:3",
                                 "f32:1 f32:1",
                                 "f16:7x17 f16:17 f16:7x1",
                                 "bf16:5x9 bf16:5x1",
                                 "f64:3x3 f64:1x3",
                                 "f32:1x64x40x40 f32:1x64x1x1 f32:1x64x40x40",
                                 "f32:8 f32:8 f32:8 nan=1",
                                 "i32:4x5 i32:5 i32:4x1",
                                 "i64:3 i64:3",
                                 "i64: i64:",
                                 "u8:9 u8:9",
                                 "i8:9@-128..127 i8:9@-128..127",
                                 "u16:9 u16:9",
                                 "i16:9 i16:9",
                                 "u32:9 u32:9",
                                 "u64:2={18446744073709551615,5} u64:2={2,9}",
                                 "f32:2={1,nan} f32:2={nan,1}"}));
WHIMBREL_REGISTER(Kernel{.op = "Max", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
