// Sum: y = the sum of the inputs, all broadcast; rounded once.
//
// in   data  one or more, f32 | f64 | f16 | bf16, one type
// out  sum  like data
// Source: ONNX operator Sum (6, 8, 13).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  VariadicReference<kFloatTypes>(call, [](double a, double b) { return a + b; });
}

WHIMBREL_REGISTER(MakeSchema({.name = "Sum",
                              .since = 6,
                              .until = 8,
                              .types = kFloatTypesTo12,
                              .inputs = {"data_0"},
                              .output = "sum",
                              .variadic = true,
                              .infer = InferBroadcast,
                              .cost = VariadicCost,
                              .samples = {"f32:3x4 f32:3x4 f32:3x4", "f16:5", "f64:2 f64:2"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "Sum",
                              .since = 8,
                              .until = 13,
                              .types = kFloatTypesTo12,
                              .inputs = {"data_0"},
                              .output = "sum",
                              .variadic = true,
                              .infer = InferBroadcast,
                              .cost = VariadicCost,
                              .samples = {"f32:3x4 f32:4 f32:", "f16:5 f16:1", "f64:2 f64:2"}}));
WHIMBREL_REGISTER(MakeSchema(
    {.name = "Sum",
     .since = 13,
     .types = kFloatTypes,
     .inputs = {"data_0"},
     .output = "sum",
     .variadic = true,
     .infer = InferBroadcast,
     .cost = VariadicCost,
     .samples = {"f32:3x16 f32:3x16", "f32:2x3x5 f32:3x1 f32:5 f32:", "f32:4", "f32: f32:4",
                 "f32:0x3 f32:3", "f32:1 f32:1", "f16:7x17 f16:17 f16:7x1", "bf16:5x9 bf16:5x1",
                 "f64:3x3 f64:1x3", "f32:1x64x40x40 f32:1x64x1x1 f32:1x64x40x40",
                 "f32:8 f32:8 f32:8 nan=1"}}));
WHIMBREL_REGISTER(Kernel{.op = "Sum", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
