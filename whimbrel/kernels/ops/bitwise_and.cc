// BitwiseAnd: y = a & b, bit by bit, broadcast.
//
// in   A, B  integers, one type, broadcast against each other
// out  C     type of A
// Source: ONNX operator BitwiseAnd (18).

#include "whimbrel/kernels/ops/bitwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  BinaryReference<kIntegerTypes>(call,
                                 [](auto a, auto b) { return static_cast<decltype(a)>(a & b); });
}

WHIMBREL_REGISTER(BitwiseSchema("BitwiseAnd"));
WHIMBREL_REGISTER(Kernel{.op = "BitwiseAnd", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
