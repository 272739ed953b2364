// ScatterND: y = data, then y[indices[i..], s..] = f(y[..], updates[i.., s..]); a row of indices
// names a slice.
//
// in   data     any type, rank r >= 1
//      indices  i64 [i.., n], n <= r; negative: from the end
//      updates  type of data, [i.., dims of data from n on]
// attr reduction  string, from 16: none (default), add, mul; from 18 max, min
// out  output   like data
// Of two updates of one place the last wins. Source: ONNX operator ScatterND (11, 13, 16, 18).

#include <fmt/format.h>

#include "whimbrel/kernels/ops/scatter.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  ReadScatterReduction(c.schema(), c.attrs());
  const auto& data = c.in(0).dims;
  const auto& indices = c.in(1).dims;
  const auto& updates = c.in(2).dims;
  if ((data && data->empty()) || (indices && indices->empty())) {
    c.Fail("data and indices need a rank of 1 or more");
  }
  InferLikeFirst(c);
  if (!data || !indices || !indices->back().known()) return;
  const int64_t length = indices->back().value();
  if (length < 0 || length > static_cast<int64_t>(data->size())) {
    c.Fail(fmt::format("indices {} name more dims than data {} has", ToString(*indices),
                       ToString(*data)));
  }
  if (!updates) return;
  Dims want(indices->begin(), indices->end() - 1);
  want.insert(want.end(), data->begin() + length, data->end());
  bool same = want.size() == updates->size();
  for (size_t d = 0; same && d < want.size(); ++d) {
    same = !want[d].known() || !(*updates)[d].known() || want[d].Same((*updates)[d]);
  }
  if (!same) {
    c.Fail(fmt::format("updates are {}, must be {} for data {} and indices {}", ToString(*updates),
                       ToString(want), ToString(*data), ToString(*indices)));
  }
}

// In order of the updates and on one thread: two of one place must not race.
void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& data = call.x(0).shape();
  const Shape& shape = call.x(1).shape();
  const auto length = static_cast<int>(shape[-1]);
  const int64_t* indices = call.x(1).data<int64_t>();
  const int64_t rows = shape.Product(0, shape.rank() - 1);
  for (int64_t i = 0; i < rows * length; ++i) {
    const int64_t limit = data[static_cast<int>(i % length)];
    if (indices[i] < -limit || indices[i] >= limit) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("ScatterND: index {} at position {} is outside [-{}, {}) of data {}",
                              indices[i], i, limit, limit, ToString(data)),
                  "indices must lie within the axes of data");
    }
  }
  const auto strides = data.Strides();
  const int64_t slice = data.Product(length, data.rank());
  ScatterReference(call, [&](auto&& update) {
    for (int64_t row = 0; row < rows; ++row) {
      int64_t offset = 0;
      for (int k = 0; k < length; ++k) {
        int64_t at = indices[row * length + k];
        if (at < 0) at += data[k];
        offset += at * strides[static_cast<size_t>(k)];
      }
      for (int64_t s = 0; s < slice; ++s) update(row * slice + s, offset + s);
    }
  });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema schema{
      .name = "ScatterND",
      .since = since,
      .until = until,
      .inputs = {{.name = "data", .types = types, .group = 1},
                 {.name = "indices", .types = TypeBit(DType::kInt64)},
                 {.name = "updates", .types = types, .group = 1}},
      .outputs = {{.name = "output", .types = types, .group = 1}},
      .infer = Infer,
      .cost = ScatterCost,
      .samples = std::move(samples),
  };
  if (since >= 16) schema.attributes.push_back(ScatterReductionSpec());
  return schema;
}

WHIMBREL_REGISTER(Schema(11, 13, kAllTypesTo12, {"f32:8 i64:4x1={4,3,1,7} f32:4"}));
WHIMBREL_REGISTER(Schema(13, 16, kAllTypes, {"bf16:4x4x4 i64:2x1={0,2} bf16:2x4x4"}));
WHIMBREL_REGISTER(Schema(16, 18, kAllTypes,
                         {"f32:4x3 i64:2x1={1,1} f32:2x3 reduction=add",
                          "i8:3 i64:2x1={0,0} i8:2={100,100} reduction=mul"}));
WHIMBREL_REGISTER(Schema(
    18, INT_MAX, kAllTypes,
    {"f32:4x4x4 i64:2x1={0,2} f32:2x4x4", "f32:3x4 i64:5x2@0..2 f32:5", "f32:1 i64:1={0} f32:",
     "f32:4 i64:2x1={1,1} f32:2={5,7}", "f32:3x4 i64:0x2 f32:0", "f32:0x4 i64:0x1 f32:0x4",
     "f32:3x4 i64:2x0 f32:2x3x4", "f32:5 i64:3x1={1,1,-4} f32:3 reduction=add",
     "f32:5 i64:3x1={1,1,-4} f32:3 reduction=mul", "f32:5 i64:3x1={1,1,-4} f32:3 reduction=max",
     "f32:5 i64:3x1={1,1,-4} f32:3 reduction=min", "f16:7x17 i64:9x1@-7..6 f16:9x17 reduction=add",
     "f64:2x3 i64:2x2x1@0..1 f64:2x2x3", "i64:4 i64:2x1={3,3} i64:2 reduction=add",
     "u8:4 i64:2x1={3,3} u8:2 reduction=min", "bool:4 i64:3x1={3,3,0} bool:3 reduction=mul",
     "f32:8 i64:8x1@0..7 f32:8 reduction=max nan=1", "f32:1000x64 i64:100x1@0..999 f32:100x64"}));
WHIMBREL_REGISTER(Kernel{.op = "ScatterND", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
