// BitwiseNot: y = ~x, every bit turned.
//
// in   X  integers
// out  Y  like X
// Source: ONNX operator BitwiseNot (18).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  UnaryReference<kIntegerTypes>(call, [](auto x) { return static_cast<decltype(x)>(~x); });
}

WHIMBREL_REGISTER(MakeSchema({.name = "BitwiseNot",
                              .since = 18,
                              .types = kIntegerTypes,
                              .samples = {"i32:3x16@-99..99", "i64:1", "u8:", "u16:0x8",
                                          "i8:7x17@-128..127", "i16:5@-999..999", "u32:5",
                                          "u64:2={0,18446744073709551615}", "i32:1x64x40x40"}}));
WHIMBREL_REGISTER(Kernel{.op = "BitwiseNot", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
