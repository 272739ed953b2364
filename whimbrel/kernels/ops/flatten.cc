// Flatten: y = x as [product of the dims before the axis, product of the others].
//
// in   input   any type and rank
// attr axis    int in [-rank, rank], default 1
// out  output  [rows, cols]
// Source: ONNX operator Flatten (1, 9, 11, 13); negative axes are taken before 11 too.

#include <fmt/format.h>

#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/move.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  const auto& dims = c.in(0).dims;
  if (!dims) return c.SetOut(0, c.in(0).dtype, Dims(2));
  const auto rank = static_cast<int64_t>(dims->size());
  const int64_t axis = c.attrs().Int("axis", 1);
  // A scalar is 1 x 1; exporters leave the axis at 1 there.
  const int64_t limit = rank == 0 ? 1 : rank;
  if (axis < -limit || axis > limit) {
    c.Fail(fmt::format("axis {} is outside [-{}, {}] of {}", axis, rank, rank, ToString(*dims)));
  }
  const auto split = static_cast<size_t>(rank == 0 ? 0 : (axis < 0 ? axis + rank : axis));
  c.SetOut(0, c.in(0).dtype,
           Dims{ProductOf(*dims, 0, split), ProductOf(*dims, split, dims->size())});
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  CopyView(call);
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return OpSchema{
      .name = "Flatten",
      .since = since,
      .until = until,
      .inputs = {{.name = "input", .types = types, .group = 1}},
      .outputs = {{.name = "output", .types = types, .group = 1}},
      .attributes = {{"axis", AttributeType::kInt, false, "default 1; in [-rank, rank]"}},
      .infer = Infer,
      .cost = MoveCost,
      .samples = std::move(samples),
  };
}

WHIMBREL_REGISTER(Schema(1, 9, kFloatTypesTo12, {"f32:2x3x4", "f16:2x3 axis=0"}));
WHIMBREL_REGISTER(Schema(9, 13, kAllTypesTo12, {"f32:2x3x4 axis=2", "i64:5 axis=-1 opset=11"}));
WHIMBREL_REGISTER(Schema(13, INT_MAX, kAllTypes,
                         {"f32:2x3x4x5", "f32:1x512x1x1", "f32:2x3x4 axis=0", "f32:2x3x4 axis=3",
                          "f32:2x3x4 axis=-1", "f32:", "f32:0x3x4", "f16:7x17", "bf16:3 axis=1",
                          "bool:2x2", "i32:2x3x1", "f64:8x8x8"}));
WHIMBREL_REGISTER(Kernel{.op = "Flatten", .name = "view", .rank = 10, .view = true, .run = Run});
WHIMBREL_REGISTER(Kernel{.op = "Flatten", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
