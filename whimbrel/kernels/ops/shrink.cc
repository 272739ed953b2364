// Shrink: y = x + bias for x < -lambd, x - bias for x > lambd, else 0
//
// in   input  numeric
// attr lambd  float, default 0.5
//      bias   float, default 0
// out  output  like input
// Integers: a whole bias is added exactly and wraps; with another the sum is cut as Cast does.
// Source: ONNX operator Shrink (9).

#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/float_to_int.h"

namespace whimbrel {
namespace {

template <typename T>
T Plus(T x, double bias) {
  if constexpr (std::is_integral_v<T>) {
    // Whole doubles below 2^53 are exact integers.
    if (bias == std::floor(bias) && std::abs(bias) < 0x1p53) {
      return WrapAdd(x, static_cast<T>(static_cast<int64_t>(bias)));
    }
    return FloatToInt<T>(static_cast<double>(x) + bias);
  } else {
    return x + bias;
  }
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const double lambd = call.attrs().Float("lambd", 0.5);
  const double bias = call.attrs().Float("bias", 0);
  UnaryReference<kNumericTypes>(call, [=](auto x) {
    using W = decltype(x);
    const auto value = static_cast<double>(x);
    if (value < -lambd) return Plus(x, bias);
    return value > lambd ? Plus(x, -bias) : W{0};
  });
}

WHIMBREL_REGISTER(MakeSchema(
    {.name = "Shrink",
     .since = 9,
     .types = kNumericTypesTo12,
     .inputs = {"input"},
     .output = "output",
     .attributes = {{"lambd", AttributeType::kFloat, false, "default 0.5"},
                    {"bias", AttributeType::kFloat, false, "default 0"}},
     .samples = {"f32:3x16", "f32:3x16 lambd=1.5", "f32:3x16 lambd=1.5 bias=1.5", "f32:1",
                 "f32:", "f32:0x8", "f16:7x17 bias=0.25", "f64:3x5", "f32:1x64x40x40",
                 "f32:8 nan=1", "i32:9@-5..5 lambd=2 bias=1", "i64:9@-5..5 lambd=1 bias=0.5",
                 "u8:9 bias=3", "i8:3={-128,127,0} bias=-5", "f32:3={0.5,-0.5,0.50001}"}}));
WHIMBREL_REGISTER(Kernel{.op = "Shrink", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
