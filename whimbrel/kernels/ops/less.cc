// Less: y = a < b, broadcast; false when either is NaN.
//
// in   A, B  numeric, one type, broadcast against each other
// out  C     bool
// Source: ONNX operator Less (7, 9, 13).

#include "whimbrel/kernels/ops/comparison.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  BinaryReference<kNumericTypes, bool>(call, [](auto a, auto b) { return a < b; });
}

WHIMBREL_REGISTER(ComparisonSchema("Less", 7, {"f32:3x4 f32:4", "f16:5 f16:1", "f64:2x3 f64:2x1"}));
WHIMBREL_REGISTER(ComparisonSchema("Less", 9, {"f32:3x4 f32:4", "i32:5 i32:1", "u8:6 u8:6"}));
WHIMBREL_REGISTER(ComparisonSchema(
    "Less", 13,
    {"f32:3x16 f32:3x16", "f32:2x3x5 f32:3x1", "f32: f32:4", "f32:0x3 f32:3", "f32:1 f32:1",
     "f16:7x17 f16:17", "bf16:5x9 bf16:5x1", "f64:3x3 f64:1x3", "i32:4x5 i32:5", "i64:30 i64:30",
     "u8:30 u8:30", "i8:9@-128..127 i8:9@-128..127", "u16:9 u16:9", "i16:9 i16:9", "u32:9 u32:9",
     "u64:2={18446744073709551615,5} u64:2={18446744073709551614,5}",
     "f32:1x64x40x40 f32:1x64x40x40", "f32:8 f32:8 nan=1", "f32:2={0,-0} f32:2={-0,0}"}));
WHIMBREL_REGISTER(Kernel{.op = "Less", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
