// CumSum: y[i] = x[0] + ... + x[i] along one axis; integers wrap.
//
// in   x     f32 | f64 | i32 | i64 | u32 | u64, from 14 also f16 | bf16
//      axis  i32 | i64 scalar, in [-rank, rank)
// attr exclusive  int, default 0; 1: without x[i] itself
//      reverse    int, default 0; 1: sums from the end
// out  y     like x
// Source: ONNX operator CumSum (11, 14).

#include "whimbrel/kernels/ops/cumulative.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  CumulativeReference(call, 0, [](auto sum, auto x) {
    using W = decltype(sum);
    if constexpr (std::is_integral_v<W>) {
      return WrapAdd(sum, x);
    } else {
      return sum + x;
    }
  });
}

WHIMBREL_REGISTER(CumulativeSchema(
    "CumSum", 11, 14, TypeBit(DType::kFloat) | TypeBit(DType::kDouble) | kWideIntegerTypes,
    {"f32:3x4 i64:={1}", "f64:5 i32:={-1} exclusive=1", "i32:2x3 i32:1={0} reverse=1"}));
WHIMBREL_REGISTER(
    CumulativeSchema("CumSum", 14, INT_MAX, kCumulativeTypes,
                     {"f32:3x16 i64:={1}", "f32:1 i64:={0}", "f32:0x8 i64:={0}", "f32:8x0 i64:={1}",
                      "f16:7x17 i64:={-1}", "bf16:7x17 i32:={0}", "f64:2x3x4 i64:={1}",
                      "f32:2x3x4 i64:={1} exclusive=1", "f32:2x3x4 i64:={1} reverse=1",
                      "i64:3={1,2,3} i64:={0} exclusive=1 reverse=1", "f32:3x4 i64:@0..1",
                      "i32:2={2147483647,1} i32:={0}", "u32:5 i64:={0}", "u64:5 i64:={0}",
                      "f32:8 i64:={0} nan=1", "f32:64x4096 i64:={1}", "f32:4096x64 i64:={0}"}));
WHIMBREL_REGISTER(Kernel{.op = "CumSum", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
