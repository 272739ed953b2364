// Add: y = a + b, broadcast; integers wrap.
//
// in   a, b  numeric, one type, broadcast against each other
// out  y     type of a
// Source: ONNX operator Add (7, 13, 14).

#include "whimbrel/kernels/reference.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  BinaryReference<kNumericTypes>(call, [](auto a, auto b) {
    using W = decltype(a);
    if constexpr (std::is_integral_v<W>) {
      return static_cast<W>(static_cast<std::make_unsigned_t<W>>(a) + static_cast<std::make_unsigned_t<W>>(b));
    } else {
      return a + b;
    }
  });
}

WHIMBREL_REGISTER(OpSchema{
    .name = "Add",
    .since = 7,
    .inputs = {{.name = "A", .types = kNumericTypes, .group = 1}, {.name = "B", .types = kNumericTypes, .group = 1}},
    .outputs = {{.name = "C", .types = kNumericTypes, .group = 1}},
    .infer = InferBroadcast,
    .samples = {"f32:3x16 f32:3x16", "f32:2x3x5x7 f32:3x1x1", "f32: f32:4", "f32:0x3 f32:3", "f16:7x17 f16:17",
                "bf16:5x9 bf16:5x1", "i32:4x5 i32:5", "i64:3 i64:3", "u8:9 u8:9", "f64:3x3 f64:1x3",
                "f32:1x64x40x40 f32:1x64x40x40", "f32:8 f32:8 nan=1"},
});
WHIMBREL_REGISTER(Kernel{.op = "Add", .name = "reference", .in_place = 0, .run = Run});

}  // namespace
}  // namespace whimbrel
