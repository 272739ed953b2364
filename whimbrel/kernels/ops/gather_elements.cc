// GatherElements: y[i, .., j] = data[i, .., indices[i, .., j], .., j] with the index on one axis.
//
// in   data     any type, rank >= 1
//      indices  i32 | i64, same rank; other dims than the axis at most those of data; negative:
//               from the end
// attr axis     int, default 0
// out  output   type of data, shape of indices
// Source: ONNX operator GatherElements (11, 13).

#include "whimbrel/kernels/ops/element_index.h"
#include "whimbrel/kernels/ops/raw_elements.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  CheckElementIndices(c);
  c.SetOut(0, c.in(0).dtype, c.in(1).dims);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const ElementIndex index(call);
  index.CheckRange(call);
  DispatchItemSize(call, call.x(0).dtype(), [&]<typename U>() {
    const U* data = call.x(0).data<U>();
    U* y = call.y(0).data<U>();
    ParallelFor(call.y(0).elements(), 8192, [&](int64_t begin, int64_t end) {
      index.Walk(call, begin, end, [&](int64_t i, int64_t offset) { y[i] = data[offset]; });
    });
  });
}

// One element of data is read for each index.
Cost GatherCost(const OpCall& call) {
  return {
      .flops = 0,
      .bytes = 2 * static_cast<double>(call.y(0).bytes()) + static_cast<double>(call.x(1).bytes())};
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return OpSchema{
      .name = "GatherElements",
      .since = since,
      .until = until,
      .inputs = {{.name = "data", .types = types, .group = 1},
                 {.name = "indices", .types = kIndexTypes}},
      .outputs = {{.name = "output", .types = types, .group = 1}},
      .attributes = {{"axis", AttributeType::kInt, false, "default 0; in [-rank, rank)"}},
      .infer = Infer,
      .cost = GatherCost,
      .samples = std::move(samples),
  };
}

WHIMBREL_REGISTER(Schema(11, 13, kAllTypesTo12,
                         {"f32:2x2 i64:2x2={0,0,1,0} axis=1", "i32:5 i32:3@-5..4"}));
WHIMBREL_REGISTER(
    Schema(13, INT_MAX, kAllTypes,
           {"f32:3x3 i64:2x3={1,2,0,2,0,0}", "f32:3x16 i64:3x5@0..15 axis=1", "f32:1 i64:1={0}",
            "f32:3x4 i64:2x2@-4..3 axis=-1", "f32:0x8 i64:0x2 axis=1", "f32:3x4 i64:0x4",
            "f16:7x17 i32:7x3@-17..16 axis=1", "bf16:7x17 i64:4x17@0..6",
            "f64:2x3x4 i64:2x2x4@0..2 axis=1", "i64:5 i64:9@0..4", "bool:3x3 i64:3x3@0..2",
            "u8:3x3 i64:1x1={-3}", "f32:1x8400x4 i64:1x300x4@0..8399 axis=1"}));
WHIMBREL_REGISTER(Kernel{.op = "GatherElements", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
