// IsNaN: y = x is not a number
//
// in   X  f32 | f64 | f16 | bf16
// out  Y  bool, shape of X
// Source: ONNX operator IsNaN (9, 13, 20).

#include "whimbrel/kernels/ops/classify.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  ClassifyReference(call, [](double x) { return std::isnan(x); });
}

WHIMBREL_REGISTER(ClassifySchema({.name = "IsNaN",
                                  .since = 9,
                                  .until = 13,
                                  .types = kFloatTypesTo12,
                                  .samples = {"f32:3x4", "f16:5 nan=1", "f64:2"}}));
WHIMBREL_REGISTER(ClassifySchema(
    {.name = "IsNaN",
     .since = 13,
     .samples = {"f32:3x16", "f32:1", "f32:", "f32:0x8", "f16:7x17 nan=1", "bf16:7x17 nan=1",
                 "f64:3x5 nan=1", "f32:1x64x40x40", "f32:8 nan=1", "f32:4={nan,-nan,inf,-0}"}}));
WHIMBREL_REGISTER(Kernel{.op = "IsNaN", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
