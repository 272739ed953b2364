// Schema and inference of ArgMax and ArgMin.

#include "whimbrel/kernels/ops/arg_extreme.h"

#include <fmt/format.h>

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  const auto& in = c.in(0).dims;
  const bool keep = c.attrs().Int("keepdims", 1) != 0;
  if (!in) return c.SetOut(0, DType::kInt64, std::nullopt);
  const int64_t wanted = c.attrs().Int("axis", 0);
  if (in->empty()) {
    if (wanted != 0 && wanted != -1) c.Fail(fmt::format("a scalar has no axis {}", wanted));
    return c.SetOut(0, DType::kInt64, Dims{});
  }
  const int axis = NormalizeAxis(wanted, static_cast<int>(in->size()), c.schema().name);
  Dims out = *in;
  if (out[static_cast<size_t>(axis)].Is(0)) {
    c.Fail(fmt::format("axis {} of {} has no element", axis, ToString(*in)));
  }
  if (keep) {
    out[static_cast<size_t>(axis)] = 1;
  } else {
    out.erase(out.begin() + axis);
  }
  c.SetOut(0, DType::kInt64, std::move(out));
}

// One comparison per element.
Cost ArgCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops = static_cast<double>(call.x(0).elements());
  return cost;
}

}  // namespace

OpSchema ArgExtremeSchema(std::string_view name, int since) {
  WHIMBREL_CHECK(since == 1 || since == 12 || since == 13);
  const TypeMask types = since < 13 ? kNumericTypesTo12 : kNumericTypes;
  OpSchema schema{
      .name = name,
      .since = since,
      .until = since == 1 ? 12 : (since == 12 ? 13 : INT_MAX),
      .inputs = {{.name = "data", .types = types}},
      .outputs = {{.name = "reduced", .types = TypeBit(DType::kInt64)}},
      .attributes = {{"axis", AttributeType::kInt, false, "default 0; in [-rank, rank)"},
                     {"keepdims", AttributeType::kInt, false, "default 1: the axis stays as 1"}},
      .infer = Infer,
      .cost = ArgCost,
      .samples = {"f32:3x4x5 axis=1", "i32:2x3 axis=1 keepdims=0"},
  };
  if (since >= 12) {
    schema.attributes.push_back(
        {"select_last_index", AttributeType::kInt, false, "default 0: the first of equal ones"});
    schema.samples.push_back("i8:4x9@0..3 axis=1 select_last_index=1");
  }
  if (since == 13) {
    schema.samples.insert(
        schema.samples.end(),
        {"f32:1x80x8400 axis=1", "f32:7", "f32:1x1 axis=-1", "f32:0x3 axis=1",
         "f32:3x5 axis=0 nan=1", "f16:7x17 axis=-1", "bf16:9x5", "f64:4x4x4 axis=2",
         "u8:5x6@0..2 axis=1", "u8:5x6@0..2 axis=1 select_last_index=1", "i64:3 keepdims=0",
         "u16:2x3x2 axis=1", "f32:1x3x64x64 axis=1 keepdims=0"});
  }
  return schema;
}

}  // namespace whimbrel
