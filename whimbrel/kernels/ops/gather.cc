// Gather: y[a.., i.., b..] = data[a.., indices[i..], b..] with the indices on one axis.
//
// in   data     any type, rank >= 1
//      indices  i32 | i64, any shape; negative counts from the end
// attr axis     int, default 0
// out  output   data's dims with the axis replaced by the dims of indices
// Source: ONNX operator Gather (1, 11, 13); negative indices are taken at 1 too.

#include <cstring>

#include <fmt/format.h>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void InferElements(InferContext& c) {
  if (c.in(0).rank() != 1 || c.in(1).rank() > 1 || !IsInteger(c.in(0).dtype)) return;
  const auto data = SmallElements(c, 0);
  const auto indices = SmallElements(c, 1);
  if (!data || !indices) return;
  const auto count = static_cast<int64_t>(data->size());
  Dims picked;
  for (const Dim& index : *indices) {
    if (!index.known()) {
      picked.emplace_back();
      continue;
    }
    const int64_t at = index.value() < 0 ? index.value() + count : index.value();
    if (at < 0 || at >= count) {
      c.Fail(fmt::format("index {} is outside the {} elements of data", index.value(), count));
    }
    picked.push_back((*data)[static_cast<size_t>(at)]);
  }
  c.out(0).elements = std::move(picked);
}

void Infer(InferContext& c) {
  const auto& data = c.in(0).dims;
  const auto& indices = c.in(1).dims;
  if (!data) return c.SetOut(0, c.in(0).dtype, std::nullopt);
  if (data->empty()) c.Fail("data is a scalar", "data needs an axis to gather from");
  const int axis =
      NormalizeAxis(c.attrs().Int("axis", 0), static_cast<int>(data->size()), "Gather");
  if (!indices) return c.SetOut(0, c.in(0).dtype, std::nullopt);
  Dims out(data->begin(), data->begin() + axis);
  out.insert(out.end(), indices->begin(), indices->end());
  out.insert(out.end(), data->begin() + axis + 1, data->end());
  c.SetOut(0, c.in(0).dtype, std::move(out));
  InferElements(c);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Tensor& data = call.x(0);
  const int rank = data.shape().rank();
  const int axis = NormalizeAxis(call.attrs().Int("axis", 0), rank, "Gather");
  const int64_t limit = data.shape()[axis];
  const auto gather = [&]<typename I>(const I* indices) {
    const int64_t count = call.x(1).elements();
    for (int64_t i = 0; i < count; ++i) {
      if (indices[i] < -limit || indices[i] >= limit) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("Gather: index {} at position {} is outside [-{}, {}) of data {}",
                                indices[i], i, limit, limit, ToString(data.shape())),
                    "indices must lie within the gathered axis");
      }
    }
    if (call.y(0).elements() == 0) return;
    const auto row =
        static_cast<size_t>(data.shape().Product(axis + 1, rank)) * ItemSize(data.dtype());
    const auto* from = data.data<std::byte>();
    auto* to = call.y(0).data<std::byte>();
    const int64_t outer = data.shape().Product(0, axis);
    const auto grain = static_cast<int64_t>(1 + 65536 / row);
    ParallelFor(outer * count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t at = indices[i % count];
        if (at < 0) at += limit;
        std::memcpy(to + static_cast<size_t>(i) * row,
                    from + static_cast<size_t>(i / count * limit + at) * row, row);
      }
    });
  };
  if (call.x(1).dtype() == DType::kInt32) {
    gather(call.x(1).data<int32_t>());
  } else {
    gather(call.x(1).data<int64_t>());
  }
}

// Only the gathered rows are read.
Cost GatherCost(const OpCall& call) {
  return {
      .flops = 0,
      .bytes = 2 * static_cast<double>(call.y(0).bytes()) + static_cast<double>(call.x(1).bytes())};
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return OpSchema{
      .name = "Gather",
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

WHIMBREL_REGISTER(Schema(1, 13, kAllTypesTo12,
                         {"f32:3x4 i64:2={2,0}", "f16:2x3 i32:2={-1,0} axis=1 opset=11"}));
WHIMBREL_REGISTER(Schema(13, INT_MAX, kAllTypes,
                         {"f32:1000x64 i64:1x16@0..999", "f32:3x4x5 i64:2x2={0,-1,3,2} axis=1",
                          "f32:3x4 i64:={-1} axis=-1", "i64:4 i64:1={2}", "f16:7x17 i32:5@-7..6",
                          "bf16:3x3 i64:1={1}", "f32:3x4 i64:0", "f32:0x4 i64:0", "u8:9 i32:={8}",
                          "bool:2x3 i64:4@-3..2 axis=1", "f64:5x1 i64:3x1x2@0..4",
                          "i16:1x1 i64:1={0}", "f32:32000x128 i64:4x256@0..31999"}));
WHIMBREL_REGISTER(Kernel{.op = "Gather", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
