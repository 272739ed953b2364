// SwiGLU: y = a / (1 + e^(-alpha a)) * b.
//
// in   A, B   f32 | f64 | f16 | bf16, one shape
// attr alpha  float, default 1
// out  Y      like A
// Source: ONNX operator SwiGLU (28); Shazeer 2020.

#include "whimbrel/kernels/ops/check_dims.h"
#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  InferLikeFirst(c);
  if (c.in(0).dims) CheckDims(c, 1, *c.in(0).dims);
}

Cost GateCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops *= 5;
  return cost;
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const double alpha = call.attrs().Float("alpha", 1);
  BinaryReference<kFloatTypes>(
      call, [alpha](double a, double b) { return a / (1 + std::exp(-alpha * a)) * b; });
}

WHIMBREL_REGISTER(MakeSchema(
    {.name = "SwiGLU",
     .since = 28,
     .types = kFloatTypes,
     .inputs = {"A", "B"},
     .attributes = {{"alpha", AttributeType::kFloat, false, "default 1: slope inside the sigmoid"}},
     .infer = Infer,
     .cost = GateCost,
     .samples = {"f32:3x16 f32:3x16", "f32:1 f32:1", "f32: f32:", "f32:0x8 f32:0x8",
                 "f16:7x17 f16:7x17", "bf16:5x9 bf16:5x9", "f64:3x5 f64:3x5 alpha=1.702",
                 "f32:8 f32:8 nan=1", "f32:4={-1000,-100,100,1000} f32:4",
                 "f32:1x64x40x40 f32:1x64x40x40 alpha=0"}}));
WHIMBREL_REGISTER(Kernel{.op = "SwiGLU", .name = "reference", .in_place = 3, .run = Run});

}  // namespace
}  // namespace whimbrel
