// ArgMax: y = index of the largest element on an axis.
//
// in   data     numeric
// attr axis     int, default 0
//      keepdims int, default 1
//      select_last_index  int, default 0, from opset 12
// out  reduced  i64
// Source: ONNX operator ArgMax (1, 11, 12, 13). The first NaN wins.

#include "whimbrel/kernels/ops/arg_extreme.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  ArgExtremeReference(call, [](auto a, auto b) { return a > b; });
}

WHIMBREL_REGISTER(ArgExtremeSchema("ArgMax", 1));
WHIMBREL_REGISTER(ArgExtremeSchema("ArgMax", 12));
WHIMBREL_REGISTER(ArgExtremeSchema("ArgMax", 13));
WHIMBREL_REGISTER(Kernel{.op = "ArgMax", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
