// BitShift: z = x shifted by y bits to the left or to the right, broadcast.
//
// in   X, Y  unsigned integers, from 28 also signed, one type
// attr direction  string, "LEFT" or "RIGHT"
// out  Z     type of X
// To the right the sign is copied in. A shift that is negative or not smaller than the type leaves
// the sign alone: -1 for negative numbers to the right, else 0.
// Source: ONNX operator BitShift (11, 28).

#include <limits>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  const std::string_view direction = c.attrs().String("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    c.Fail("direction is \"" + std::string(direction) + "\"", "it is LEFT or RIGHT");
  }
  InferBroadcast(c);
}

template <typename T>
bool WithinType(T shift) {
  constexpr int kBits = std::numeric_limits<T>::digits + (std::is_signed_v<T> ? 1 : 0);
  return !IsNegative(shift) && shift < static_cast<T>(kBits);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  if (call.attrs().String("direction", "") == "LEFT") {
    BinaryReference<kIntegerTypes>(call, [](auto x, auto y) {
      using T = decltype(x);
      return WithinType(y) ? static_cast<T>(static_cast<uint64_t>(x) << y) : T{0};
    });
  } else {
    BinaryReference<kIntegerTypes>(call, [](auto x, auto y) {
      using T = decltype(x);
      if (WithinType(y)) return static_cast<T>(x >> y);
      return IsNegative(x) ? static_cast<T>(-1) : T{0};
    });
  }
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return MakeSchema({.name = "BitShift",
                     .since = since,
                     .until = until,
                     .types = types,
                     .inputs = {"X", "Y"},
                     .output = "Z",
                     .attributes = {{"direction", AttributeType::kString, true, "LEFT or RIGHT"}},
                     .infer = Infer,
                     .samples = std::move(samples)});
}

WHIMBREL_REGISTER(Schema(11, 28, kUnsignedTypes,
                         {"u8:3x4@0..255 u8:4 direction=LEFT",
                          "u16:5@0..65535 u16:1 direction=RIGHT",
                          "u64:3={1,18446744073709551615,7} u64:3={63,64,1} direction=LEFT"}));
WHIMBREL_REGISTER(Schema(28, INT_MAX, kIntegerTypes,
                         {"i32:3x16@-99..99 i32:3x16 direction=RIGHT",
                          "i32:3x16@-99..99 i32:16 direction=LEFT", "i64:1 i64:1 direction=LEFT",
                          "i8: i8:4 direction=RIGHT", "i16:0x3 i16:3 direction=LEFT",
                          "i8:5={-128,-128,127,1,-1} i8:5={7,8,1,-1,-1} direction=RIGHT",
                          "i8:5={-128,-128,127,1,-1} i8:5={7,8,1,-1,0} direction=LEFT",
                          "i32:2={-2147483648,1} i32:2={31,31} direction=RIGHT",
                          "i64:2={-9223372036854775808,1} i64:2={63,63} direction=RIGHT",
                          "u32:7x17 u32:17@0..40 direction=RIGHT",
                          "u8:9@0..255 u8:9 direction=RIGHT", "u16:9@0..65535 u16:9 direction=LEFT",
                          "u64:1x64x400 u64:64x1 direction=LEFT"}));
WHIMBREL_REGISTER(Kernel{.op = "BitShift", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
