// Squeeze: y = x without the named dims of 1 (without all of them when no axes are given).
//
// in   data  any type
//      axes  i64 [n], optional, from opset 13
// attr axes  ints, before opset 13
// out  squeezed
// Source: ONNX operator Squeeze (1, 11, 13). Axes that are given but empty remove nothing.

#include <fmt/format.h>

#include "whimbrel/kernels/ops/axes.h"
#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/move.h"

namespace whimbrel {
namespace {

std::optional<Dims> InferDims(InferContext& c) {
  const IntegerList axes = InferIntegers(c, "axes", 1);
  const auto& dims = c.in(0).dims;
  if (!dims) return std::nullopt;
  const auto rank = static_cast<int64_t>(dims->size());
  if (axes.present && !axes.values) {
    if (!axes.count || *axes.count > rank) return std::nullopt;
    return *axes.count == 0 ? *dims : Dims(static_cast<size_t>(rank - *axes.count));
  }
  const uint32_t mask =
      axes.present ? InferAxisMask(c, *axes.values, static_cast<int>(rank), true) : 0;
  Dims out;
  for (size_t d = 0; d < dims->size(); ++d) {
    const Dim& dim = (*dims)[d];
    if (!axes.present) {
      if (!dim.known()) return std::nullopt;  // may be 1
      if (!dim.Is(1)) out.push_back(dim);
    } else if (!HasAxis(mask, static_cast<int>(d))) {
      out.push_back(dim);
    } else if (dim.known() && !dim.Is(1)) {
      c.Fail(fmt::format("dim {} of {} is not 1", d, ToString(*dims)));
    }
  }
  return out;
}

void Infer(InferContext& c) {
  c.SetOut(0, c.in(0).dtype, InferDims(c));
  if (c.in(0).rank() <= 1) c.out(0).elements = SmallElements(c, 0);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& in = call.x(0).shape();
  const RunIntegers axes = ReadIntegers(call, "axes", 1);
  const uint32_t mask = ReadAxisMask(call, axes, in.rank());
  std::array<int64_t, kMaxRank> dims{};
  size_t rank = 0;
  for (int d = 0; d < in.rank(); ++d) {
    const bool named = axes.present ? HasAxis(mask, d) : in[d] == 1;
    if (!named) {
      dims[rank++] = in[d];
    } else if (in[d] != 1) {
      throw Error(Code::kInvalidData,
                  fmt::format("Squeeze: dim {} of {} is not 1", d, ToString(in)));
    }
  }
  call.ResizeOutput(0, call.x(0).dtype(), Shape(std::span<const int64_t>(dims.data(), rank)));
  CopyView(call);
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema schema{
      .name = "Squeeze",
      .since = since,
      .until = until,
      .inputs = {{.name = "data", .types = types, .group = 1}},
      .outputs = {{.name = "squeezed", .types = types, .group = 1}},
      .infer = Infer,
      .cost = MoveCost,
      .samples = std::move(samples),
  };
  if (since < 13) {
    schema.attributes = {{"axes", AttributeType::kInts, false, "default: every dim of 1"}};
  } else {
    schema.inputs.push_back({.name = "axes", .types = TypeBit(DType::kInt64), .optional = true});
  }
  return schema;
}

WHIMBREL_REGISTER(Schema(1, 13, kAllTypesTo12,
                         {"f32:1x3x1x5", "f32:1x3x1x5 axes=2,0", "i64:1x1 axes=-1 opset=11"}));
WHIMBREL_REGISTER(Schema(13, INT_MAX, kAllTypes,
                         {"f32:1x3x1x5 i64:2={2,0}", "f32:1x3x1x5", "f32:1x512x1x1 i64:2={-1,-2}",
                          "f32:1x3 i64:1@0..0", "f32:", "f32:1x0 i64:1={0}", "f16:1x1 i64:2={0,1}",
                          "bf16:1x7x1 i64:1={-1}", "i64:1 i64:1={0}", "bool:3x1 i64:1={1}",
                          "f64:1x1x1", "u8:1x9 i64:0"}));
WHIMBREL_REGISTER(Kernel{.op = "Squeeze", .name = "view", .rank = 10, .view = true, .run = Run});
WHIMBREL_REGISTER(Kernel{.op = "Squeeze", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
