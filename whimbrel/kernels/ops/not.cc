// Not: y = not x
//
// in   X  bool
// out  Y  like X
// Source: ONNX operator Not (1).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  UnaryReference<kBoolType>(call, [](bool x) { return !x; });
}

WHIMBREL_REGISTER(MakeSchema({.name = "Not",
                              .since = 1,
                              .types = kBoolType,
                              .samples = {"bool:3x16", "bool:1", "bool:", "bool:0x8", "bool:7x17",
                                          "bool:2x3x4x5", "bool:1x64x40x40"}}));
WHIMBREL_REGISTER(Kernel{.op = "Not", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
