// HammingWindow: y[n] = 25/46 - 21/46 cos(2 pi n / N), n < size
//
// in   size    i32 | i64 scalar
// attr periodic         int, default 1: N = size; 0: N = size - 1, and a window of one element is 1
//      output_datatype  int, an ONNX type number, default 1 (f32)
// out  output  [size], numeric
// Source: ONNX operator HammingWindow (17); Harris 1978.

#include "whimbrel/kernels/ops/window_function.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  RunWindowFunction(call, {25.0 / 46, 21.0 / 46, 0});
}

WHIMBREL_REGISTER(WindowFunctionSchema("HammingWindow"));
WHIMBREL_REGISTER(Kernel{.op = "HammingWindow", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
