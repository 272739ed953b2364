// Identity: y = x.
//
// in   input   any type
// out  output  like input
// Source: ONNX operator Identity (1, 13, 14, 16, 19, 21, 23, 24, 25); sequences and optionals are
// left out.

#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/move.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  InferLikeFirst(c);
  c.out(0).elements = SmallElements(c, 0);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  CopyView(call);
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return MakeSchema({.name = "Identity",
                     .since = since,
                     .until = until,
                     .types = types,
                     .inputs = {"input"},
                     .output = "output",
                     .infer = Infer,
                     .cost = MoveCost,
                     .samples = std::move(samples)});
}

WHIMBREL_REGISTER(Schema(1, 13, kAllTypesTo12, {"f32:3x4 opset=7", "i64:5"}));
WHIMBREL_REGISTER(Schema(13, INT_MAX, kAllTypes,
                         {"f32:3x16", "f32:1", "f32:", "f32:0x8", "f16:7x17", "bf16:7x17", "f64:3",
                          "i64:3={2,-1,7}", "i32:", "bool:9", "u8:3x5", "i8:3", "u64:2",
                          "f32:1x64x40x40", "f32:8 nan=1"}));
WHIMBREL_REGISTER(Kernel{.op = "Identity", .name = "reference", .run = Run});
WHIMBREL_REGISTER(Kernel{.op = "Identity", .name = "view", .rank = 10, .view = true, .run = Run});

}  // namespace
}  // namespace whimbrel
