// BitCast: y has the bits of x under another type of the same width.
//
// in   input   any number type or bool
// attr to      int, an element type as wide as that of input
// out  output  same dims, type `to`
// Source: ONNX operator BitCast (26). A bool holds 0 or 1 here: other bits become 1.

#include <cstring>

#include <fmt/format.h>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  const int64_t to = c.attrs().Int("to", 0);
  const auto type = to > 0 && to <= static_cast<int64_t>(DType::kBFloat16) ? static_cast<DType>(to)
                                                                           : DType::kUndefined;
  if (ItemSize(type) == 0) {
    throw Error(Code::kUnsupported, fmt::format("BitCast: element type {} is not taken", to));
  }
  if (ItemSize(type) != ItemSize(c.in(0).dtype)) {
    c.Fail(fmt::format("{} has {} bytes, {} has {}", DTypeName(c.in(0).dtype),
                       ItemSize(c.in(0).dtype), DTypeName(type), ItemSize(type)),
           "the widths must be equal");
  }
  c.SetOut(0, type, c.in(0).dims);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const size_t bytes = call.x(0).bytes();
  if (bytes == 0) return;
  if (call.y(0).dtype() == DType::kBool) {
    for (size_t i = 0; i < bytes; ++i) {
      call.y(0).data<bool>()[i] = call.x(0).data<uint8_t>()[i] != 0;
    }
  } else {
    std::memcpy(call.y(0).raw(), call.x(0).raw(), bytes);
  }
}

WHIMBREL_REGISTER(OpSchema{
    .name = "BitCast",
    .since = 26,
    .inputs = {{.name = "input"}},
    .outputs = {{.name = "output"}},
    .attributes = {{.name = "to", .type = AttributeType::kInt, .required = true}},
    .infer = Infer,
    .cost = MoveCost,
    .samples = {"f32:3x5 to=6", "i64:2x3 to=11", "u16:7 to=10", "bool:4 to=2", "f32: to=12",
                "i8:0x3 to=2", "u8:4={0,1,0,1} to=9"},
});
WHIMBREL_REGISTER(Kernel{.op = "BitCast", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
