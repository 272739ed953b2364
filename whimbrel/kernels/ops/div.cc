// Div: y = a / b, broadcast; integers are cut towards zero, and x / 0 is 0 for them.
//
// in   A, B  numeric, one type, broadcast against each other
// out  C     type of A
// Source: ONNX operator Div (7, 13, 14).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

// Integers are cut towards zero. x / 0 has no integer value and traps in hardware: 0, as numpy
// gives. -2^63 / -1 wraps to itself.
template <typename W>
W Quotient(W a, W b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<W>) {
    if (b == -1) return WrapSub(W{0}, a);
  }
  return static_cast<W>(a / b);
}

Dim ElementQuotient(const Dim& a, const Dim& b) {
  if (b.Is(0)) return Dim();
  if (a.known() && b.known()) return Quotient(a.value(), b.value());
  return FloorDiv(a, b);
}

void Infer(InferContext& c) {
  InferArithmetic(c, ElementQuotient);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  BinaryReference<kNumericTypes>(call, [](auto a, auto b) {
    using W = decltype(a);
    if constexpr (std::is_integral_v<W>) {
      return Quotient(a, b);
    } else {
      return a / b;
    }
  });
}

WHIMBREL_REGISTER(ArithmeticSchema("Div", 7, Infer,
                                   {"f32:3x4 f32:4", "f16:5 f16:1", "i64:3 i64:3",
                                    "u32:4 u32:4@1..9"}));
WHIMBREL_REGISTER(ArithmeticSchema("Div", 13, Infer,
                                   {"bf16:3x5 bf16:5", "f32:2x3 f32:2x1", "i32:4 i32:4@1..9"}));
WHIMBREL_REGISTER(ArithmeticSchema(
    "Div", 14, Infer,
    {"f32:3x16 f32:3x16", "f32:2x3x5x7 f32:3x1x1", "f32: f32:4", "f32:0x3 f32:3", "f32:1 f32:1",
     "f16:7x17 f16:17", "bf16:5x9 bf16:5x1", "f64:3x3 f64:1x3", "i32:4x5 i32:5@1..9",
     "i64:3 i64:3@1..9", "u8:9 u8:9@1..9", "i8:5@-128..127 i8:5@1..9",
     "u16:4@0..65535 u16:4@1..65535", "f32:1x64x40x40 f32:1x64x40x40", "f32:8 f32:8 nan=1",
     "i32:6={7,-7,7,-7,3,-2147483648} i32:6={2,2,-2,-2,0,-1}",
     "f32:4={1,-1,0,3} f32:4={0,0,0,-0.5}", "u64:2={18446744073709551615,5} u64:2={2,0}"}));
WHIMBREL_REGISTER(Kernel{.op = "Div", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
