// Xor: y = a != b, broadcast.
//
// in   A, B  bool, one type, broadcast against each other
// out  C     bool
// Source: ONNX operator Xor (7).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  BinaryReference<kBoolType, bool>(call, [](auto a, auto b) { return a != b; });
}

WHIMBREL_REGISTER(MakeSchema({.name = "Xor",
                              .since = 7,
                              .types = kBoolType,
                              .out_types = kBoolType,
                              .inputs = {"A", "B"},
                              .output = "C",
                              .infer = InferBroadcastBool,
                              .samples = {"bool:3x16 bool:3x16", "bool:2x3x5 bool:3x1",
                                          "bool: bool:4", "bool:0x3 bool:3", "bool:1 bool:1",
                                          "bool:7x17 bool:17", "bool:1x64x40x40 bool:1x64x1x1"}}));
WHIMBREL_REGISTER(Kernel{.op = "Xor", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
