// CastLike: y = x in the type of another tensor; as Cast.
//
// in   input        any type
//      target_type  any type; its elements do not matter
// attr saturate     int, for 8-bit float targets only, which are not taken here
//      round_mode   string, likewise
// out  output       like input, in the type of target_type
// Source: ONNX operator CastLike (15, 19, 21, 23, 24, 25).

#include "whimbrel/kernels/ops/convert.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  InferConversion(c, c.in(1).dtype);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  ConvertReference(call);
}

OpSchema Schema(int since, int until, std::vector<std::string_view> samples) {
  OpSchema schema{
      .name = "CastLike",
      .since = since,
      .until = until,
      .inputs = {{.name = "input"}, {.name = "target_type", .group = 1}},
      .outputs = {{.name = "output", .group = 1}},
      .infer = Infer,
      .cost = MoveCost,
      .samples = std::move(samples),
  };
  if (since >= 19) {
    schema.attributes.push_back(
        {"saturate", AttributeType::kInt, false, "default 1; matters for 8-bit floats only"});
  }
  if (since >= 24) {
    schema.attributes.push_back(
        {"round_mode", AttributeType::kString, false, "default up; matters for float8e8m0 only"});
  }
  return schema;
}

WHIMBREL_REGISTER(Schema(15, 19, {"f32:3x4 i64:1", "f16:5 f32:", "bool:4 f32:2x2"}));
WHIMBREL_REGISTER(Schema(19, 24, {"f32:3x4 f16:1 saturate=0", "u8:5 f32:3 opset=21"}));
WHIMBREL_REGISTER(Schema(24, INT_MAX,
                         {"f32:3x16 f16:1", "f32:1 i64:1", "f32: i32:", "f32:0x8 f64:3",
                          "f16:7x17 bf16:0", "bf16:7x17 f16:1", "f64:3x5@-9..9 i8:1", "i64:3 i32:1",
                          "i64:2={3,-1} i32:1", "bool:9 i64:1", "i32:9@-2..2 bool:1", "u8:9 f32:1",
                          "f32:1x64x40x40 f16:1", "f32:8 bool:1 nan=1",
                          "f32:10={300,-1,-1.5,3e9,-3e9,1e20,nan,inf,-inf,70000} i8:1",
                          "f32:2 bf16:1 round_mode=up"}));
WHIMBREL_REGISTER(Kernel{.op = "CastLike", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
