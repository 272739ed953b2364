// Mul: y = a * b, broadcast; integers wrap.
//
// in   A, B  numeric, one type, broadcast against each other
// out  C     type of A
// Source: ONNX operator Mul (7, 13, 14).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  InferArithmetic(c, [](const Dim& a, const Dim& b) { return a * b; });
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  BinaryReference<kNumericTypes>(call, [](auto a, auto b) {
    using W = decltype(a);
    if constexpr (std::is_integral_v<W>) {
      return WrapMul(a, b);
    } else {
      return a * b;
    }
  });
}

WHIMBREL_REGISTER(ArithmeticSchema("Mul", 7, Infer,
                                   {"f32:3x4 f32:4", "f16:5 f16:1", "i64:3 i64:3",
                                    "u32:4 u32:4@1..9"}));
WHIMBREL_REGISTER(ArithmeticSchema("Mul", 13, Infer,
                                   {"bf16:3x5 bf16:5", "f32:2x3 f32:2x1", "i32:4 i32:4@1..9"}));
WHIMBREL_REGISTER(ArithmeticSchema(
    "Mul", 14, Infer,
    {"f32:3x16 f32:3x16", "f32:2x3x5x7 f32:3x1x1", "f32: f32:4", "f32:0x3 f32:3", "f32:1 f32:1",
     "f16:7x17 f16:17", "bf16:5x9 bf16:5x1", "f64:3x3 f64:1x3", "i32:4x5 i32:5@1..9",
     "i64:3 i64:3@1..9", "u8:9 u8:9@1..9", "i8:5@-128..127 i8:5@1..9",
     "u16:4@0..65535 u16:4@1..65535", "f32:1x64x40x40 f32:1x64x40x40", "f32:8 f32:8 nan=1",
     "u16:2={65535,3} u16:2={65535,5}",
     "i64:2={9223372036854775807,-9223372036854775808} i64:2={2,-1}"}));
WHIMBREL_REGISTER(Kernel{.op = "Mul", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
