// Mod: y = a - q b with q = floor(a / b), or trunc(a / b) with fmod, broadcast.
//
// in   A, B  numeric, one type, broadcast against each other
// attr fmod  int, default 0: the sign of b; 1: the sign of a, as C's fmod
// out  C     type of A
// Float types take fmod = 0 from 28 on. What ONNX leaves open: an integer modulo 0 is 0, as numpy
// has it. Source: ONNX operator Mod (10, 13, 28).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

template <typename T>
T FloorMod(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;  // the smallest number / -1 traps
    }
    const auto rest = static_cast<T>(a % b);
    return rest != 0 && IsNegative(rest) != IsNegative(b) ? static_cast<T>(rest + b) : rest;
  } else {
    const T rest = std::fmod(a, b);
    if (rest == 0) return std::copysign(T{0}, b);
    return (rest < 0) != (b < 0) && !std::isnan(rest) ? rest + b : rest;
  }
}

template <typename T>
T TruncMod(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  } else {
    return std::fmod(a, b);
  }
}

void Infer(InferContext& c) {
  const int64_t fmod = c.attrs().Int("fmod", 0);
  if (fmod != 0 && fmod != 1) c.Fail("fmod is " + std::to_string(fmod), "it is 0 or 1");
  if (fmod == 0 && c.opset() < 28 && IsFloating(c.in(0).dtype)) {
    c.Fail("fmod is 0 for a float type", "before opset 28 float types need fmod = 1");
  }
  if (fmod == 0) {
    InferArithmetic(c, [](const Dim& a, const Dim& b) {
      return a.known() && b.known() ? Dim(FloorMod(a.value(), b.value())) : Dim();
    });
  } else {
    InferArithmetic(c, [](const Dim& a, const Dim& b) {
      return a.known() && b.known() ? Dim(TruncMod(a.value(), b.value())) : Dim();
    });
  }
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  if (call.attrs().Int("fmod", 0) == 0) {
    BinaryReference<kNumericTypes>(call, [](auto a, auto b) { return FloorMod(a, b); });
  } else {
    BinaryReference<kNumericTypes>(call, [](auto a, auto b) { return TruncMod(a, b); });
  }
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return MakeSchema({.name = "Mod",
                     .since = since,
                     .until = until,
                     .types = types,
                     .inputs = {"A", "B"},
                     .output = "C",
                     .attributes = {{"fmod", AttributeType::kInt, false,
                                     "default 0: sign of the divisor; 1: sign of the dividend"}},
                     .infer = Infer,
                     .samples = std::move(samples)});
}

WHIMBREL_REGISTER(Schema(10, 13, kNumericTypesTo12,
                         {"i64:3x4@-9..9 i64:4@1..5", "f32:5 f32:5@1..2 fmod=1"}));
WHIMBREL_REGISTER(Schema(13, 28, kNumericTypes,
                         {"i32:3x4@-9..9 i32:4@-5..-1", "bf16:5 bf16:5@1..2 fmod=1",
                          "i64:2={7,-7} i64:2={3,3}", "i64:2={7,-7} i64:2={3,3} fmod=1"}));
WHIMBREL_REGISTER(Schema(28, INT_MAX, kNumericTypes,
                         {"f32:3x16@-9..9 f32:3x16",
                          "f32:3x16@-9..9 f32:3x16 fmod=1",
                          "f32: f32:4",
                          "f32:0x3 f32:3",
                          "f32:1 f32:1 fmod=1",
                          "f16:7x17@-9..9 f16:17",
                          "f16:7x17@-9..9 f16:17 fmod=1",
                          "bf16:5x9@-9..9 bf16:5x1",
                          "f64:3x3@-9..9 f64:1x3",
                          "i32:4x5@-9..9 i32:5@-9..9",
                          "i32:4x5@-9..9 i32:5@-9..9 fmod=1",
                          "u8:9@0..255 u8:9",
                          "i8:9@-128..127 i8:9@-3..3",
                          "u16:4@0..65535 u16:4",
                          "u32:4 u32:4@1..9",
                          "u64:2={18446744073709551615,5} u64:2={7,0}",
                          "i16:5@-99..99 i16:1={7}",
                          "i64:2={-9223372036854775808,5} i64:2={-1,0}",
                          "f32:8@-9..9 f32:8 nan=1",
                          "f32:8@-9..9 f32:8 nan=1 fmod=1",
                          "f32:8={0,-0,0,-0,5,-5,5,-5} f32:8={3,3,-3,-3,inf,inf,-inf,-inf}",
                          "f32:1x64x40x40 f32:64x1x1"}));
WHIMBREL_REGISTER(Kernel{.op = "Mod", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
