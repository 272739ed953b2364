// CumProd: y[i] = x[0] * ... * x[i] along one axis; integers wrap.
//
// in   x     f32 | f64 | f16 | bf16 | i32 | i64 | u32 | u64
//      axis  i32 | i64 scalar, in [-rank, rank)
// attr exclusive  int, default 0; 1: without x[i] itself
//      reverse    int, default 0; 1: products from the end
// out  y     like x
// Source: ONNX operator CumProd (26).

#include "whimbrel/kernels/ops/cumulative.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  CumulativeReference(call, 1, [](auto product, auto x) {
    using W = decltype(product);
    if constexpr (std::is_integral_v<W>) {
      return WrapMul(product, x);
    } else {
      return product * x;
    }
  });
}

WHIMBREL_REGISTER(CumulativeSchema(
    "CumProd", 26, INT_MAX, kCumulativeTypes,
    {"f32:3x16 i64:={1}", "f32:1 i64:={0}", "f32:0x8 i64:={0}", "f32:8x0 i64:={1}",
     "f16:7x17 i64:={-1}", "bf16:7x17 i32:={0}", "f64:2x3x4 i64:={1}",
     "f32:2x3x4 i64:={1} exclusive=1", "f32:2x3x4 i64:={1} reverse=1",
     "i64:3={1,2,3} i64:={0} exclusive=1 reverse=1", "i32:2={2147483647,2} i32:={0}",
     "u32:5 i64:={0}", "u64:5 i64:={0}", "f32:8 i64:={0} nan=1", "f32:64x4096 i64:={1}"}));
WHIMBREL_REGISTER(Kernel{.op = "CumProd", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
