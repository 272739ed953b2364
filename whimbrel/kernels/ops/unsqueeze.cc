// Unsqueeze: y = x with dims of 1 put in, so that they stand at the named axes of y.
//
// in   data  any type
//      axes  i64 [n], from opset 13; in any order, negative ones count from the end of y
// attr axes  ints, required, before opset 13
// out  expanded
// Source: ONNX operator Unsqueeze (1, 11, 13).

#include <fmt/format.h>

#include "whimbrel/kernels/ops/axes.h"
#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/move.h"

namespace whimbrel {
namespace {

std::optional<Dims> InferDims(InferContext& c) {
  const IntegerList axes = InferIntegers(c, "axes", 1);
  const auto& dims = c.in(0).dims;
  if (!dims || !axes.count) return std::nullopt;
  if (*axes.count > 2 * kMaxRank) c.Fail(fmt::format("{} axes are too many", *axes.count));
  const size_t rank = dims->size() + static_cast<size_t>(*axes.count);
  if (!axes.values) return Dims(rank);
  const uint32_t mask = InferAxisMask(c, *axes.values, static_cast<int>(rank), false);
  Dims out;
  auto next = dims->begin();
  for (size_t d = 0; d < rank; ++d) {
    out.push_back(HasAxis(mask, static_cast<int>(d)) ? Dim(1) : *next++);
  }
  return out;
}

void Infer(InferContext& c) {
  c.SetOut(0, c.in(0).dtype, InferDims(c));
  if (c.out(0).rank() == 1) c.out(0).elements = SmallElements(c, 0);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& in = call.x(0).shape();
  const RunIntegers axes = ReadIntegers(call, "axes", 1);
  const int rank = in.rank() + axes.count;
  if (rank > kMaxRank) {
    throw Error(Code::kUnsupported, fmt::format("Unsqueeze: rank {} is above {}", rank, kMaxRank));
  }
  const uint32_t mask = ReadAxisMask(call, axes, rank);
  std::array<int64_t, kMaxRank> dims{};
  int from = 0;
  for (int d = 0; d < rank; ++d) {
    if (!HasAxis(mask, d) && from == in.rank()) {
      throw Error(Code::kInvalidData, "Unsqueeze: an axis is named twice");
    }
    dims[static_cast<size_t>(d)] = HasAxis(mask, d) ? 1 : in[from++];
  }
  call.ResizeOutput(0, call.x(0).dtype(),
                    Shape(std::span<const int64_t>(dims.data(), static_cast<size_t>(rank))));
  CopyView(call);
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema schema{
      .name = "Unsqueeze",
      .since = since,
      .until = until,
      .inputs = {{.name = "data", .types = types, .group = 1}},
      .outputs = {{.name = "expanded", .types = types, .group = 1}},
      .infer = Infer,
      .cost = MoveCost,
      .samples = std::move(samples),
  };
  if (since < 13) {
    schema.attributes = {{"axes", AttributeType::kInts, true, "axes of the output"}};
  } else {
    schema.inputs.push_back({.name = "axes", .types = TypeBit(DType::kInt64)});
  }
  return schema;
}

WHIMBREL_REGISTER(Schema(1, 13, kAllTypesTo12, {"f32:3x4 axes=3,0", "i64:2 axes=-1 opset=11"}));
WHIMBREL_REGISTER(Schema(13, INT_MAX, kAllTypes,
                         {"f32:3x4 i64:1={0}", "f32:3x4 i64:3={4,0,2}", "f32:3x4 i64:2={-1,1}",
                          "f32: i64:1={0}", "f32:5 i64:1@0..1", "f32:0x3 i64:1={1}",
                          "f16:7x17 i64:1={-1}", "bf16:3 i64:2={0,1}", "i64: i64:1={0}",
                          "bool:2 i64:1={1}", "f64:1 i64:1={0}", "u8:9x2 i64:0"}));
WHIMBREL_REGISTER(Kernel{.op = "Unsqueeze", .name = "view", .rank = 10, .view = true, .run = Run});
WHIMBREL_REGISTER(Kernel{.op = "Unsqueeze", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
