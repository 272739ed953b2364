// LayoutConvert: the same values in the other memory layout; plans put it between kernels that want different ones.
//
// in   x  any type, rank >= 3
// out  y  like x, channels-last when x is plain and the other way round
// Source: ours; a model never names it.

#include "whimbrel/kernels/kernels.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  ConvertLayout(call.x(0), call.y(0));
}

Cost CostOfConvert(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops = 0;
  return cost;
}

WHIMBREL_REGISTER(OpSchema{
    .name = "LayoutConvert",
    .domain = "whimbrel",
    .inputs = {{.name = "X"}},
    .outputs = {{.name = "Y"}},
    .infer = InferLikeFirst,
    .cost = CostOfConvert,
    .samples = {"f32:1x3x5x7", "f32:2x16x4x4", "i64:1x2x3", "f16:1x8x3x3", "f32:1x0x2x2"},
});
WHIMBREL_REGISTER(Kernel{.op = "LayoutConvert", .domain = "whimbrel", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
