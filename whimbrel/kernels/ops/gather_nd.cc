// GatherND: y[b.., i.., s..] = data[b.., indices[b.., i..], s..]; a row of indices names a slice.
//
// in   data     any type, rank r >= 1
//      indices  i64 [batch dims.., ..., n], rank >= 1, n <= r - batch_dims; negative: from the end
// attr batch_dims  int, default 0, from opset 12: leading dims that data and indices share
// out  output   dims of indices but the last, then the dims of data from batch_dims + n on
// Source: ONNX operator GatherND (11, 12, 13).

#include <cstring>

#include <fmt/format.h>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  const auto& data = c.in(0).dims;
  const auto& indices = c.in(1).dims;
  const int64_t batch = c.attrs().Int("batch_dims", 0);
  if ((data && data->empty()) || (indices && indices->empty())) {
    c.Fail("data and indices must have a rank of at least 1");
  }
  if (!data || !indices || !indices->back().known()) {
    return c.SetOut(0, c.in(0).dtype, std::nullopt);
  }
  const auto rank = static_cast<int64_t>(data->size());
  const int64_t length = indices->back().value();
  if (batch < 0 || batch >= static_cast<int64_t>(indices->size()) || batch >= rank ||
      length > rank - batch || length < 0) {
    c.Fail(fmt::format("data {}, indices {} and batch_dims {} do not fit", ToString(*data),
                       ToString(*indices), batch));
  }
  for (size_t d = 0; d < static_cast<size_t>(batch); ++d) {
    const Dim& a = (*data)[d];
    const Dim& b = (*indices)[d];
    if (a.known() && b.known() && !a.Same(b)) {
      c.Fail(fmt::format("data {} and indices {} differ in batch dim {}", ToString(*data),
                         ToString(*indices), d));
    }
  }
  Dims out(indices->begin(), indices->end() - 1);
  out.insert(out.end(), data->begin() + batch + length, data->end());
  c.SetOut(0, c.in(0).dtype, std::move(out));
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& data = call.x(0).shape();
  const Shape& shape = call.x(1).shape();
  const auto batch = static_cast<int>(call.attrs().Int("batch_dims", 0));
  const auto length = static_cast<int>(shape[-1]);
  const int64_t* indices = call.x(1).data<int64_t>();
  const int64_t rows = shape.Product(0, shape.rank() - 1);
  for (int64_t i = 0; i < rows * length; ++i) {
    const int64_t limit = data[batch + static_cast<int>(i % length)];
    if (indices[i] < -limit || indices[i] >= limit) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("GatherND: index {} at position {} is outside [-{}, {}) of data {}",
                              indices[i], i, limit, limit, ToString(data)),
                  "indices must lie within the gathered axes");
    }
  }
  if (call.y(0).elements() == 0) return;
  const auto strides = data.Strides();
  const auto item = static_cast<int64_t>(ItemSize(call.x(0).dtype()));
  const int64_t slice = data.Product(batch + length, data.rank()) * item;
  const int64_t rows_per_batch = shape.Product(batch, shape.rank() - 1);
  const int64_t batch_bytes = data.Product(batch, data.rank()) * item;
  const auto* from = call.x(0).data<std::byte>();
  auto* to = call.y(0).data<std::byte>();
  ParallelFor(rows, 1 + 65536 / slice, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t offset = row / rows_per_batch * batch_bytes;
      for (int k = 0; k < length; ++k) {
        const int axis = batch + k;
        int64_t at = indices[row * length + k];
        if (at < 0) at += data[axis];
        offset += at * strides[static_cast<size_t>(axis)] * item;
      }
      std::memcpy(to + row * slice, from + offset, static_cast<size_t>(slice));
    }
  });
}

Cost GatherCost(const OpCall& call) {
  return {
      .flops = 0,
      .bytes = 2 * static_cast<double>(call.y(0).bytes()) + static_cast<double>(call.x(1).bytes())};
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema schema{
      .name = "GatherND",
      .since = since,
      .until = until,
      .inputs = {{.name = "data", .types = types, .group = 1},
                 {.name = "indices", .types = TypeBit(DType::kInt64)}},
      .outputs = {{.name = "output", .types = types, .group = 1}},
      .infer = Infer,
      .cost = GatherCost,
      .samples = std::move(samples),
  };
  if (since >= 12) {
    schema.attributes = {{"batch_dims", AttributeType::kInt, false, "default 0"}};
  }
  return schema;
}

WHIMBREL_REGISTER(Schema(11, 12, kAllTypesTo12, {"f32:2x3 i64:2x2={0,2,1,-1}"}));
WHIMBREL_REGISTER(Schema(12, 13, kAllTypesTo12, {"f32:2x3x4 i64:2x1={1,0} batch_dims=1"}));
WHIMBREL_REGISTER(
    Schema(13, INT_MAX, kAllTypes,
           {"f32:2x3x4 i64:2x2={0,2,-1,0}", "f32:5 i64:1={3}", "f32:2x3 i64:1x1={1}",
            "f32:2x3x4 i64:2x5x1@0..2 batch_dims=1", "f32:2x3x4 i64:2x3x1@0..3 batch_dims=2",
            "f32:3x3 i64:0x2", "f32:0x3 i64:0x1", "f32:3x4 i64:2x0", "f16:7x17 i64:9x2@0..6",
            "bf16:3x3 i64:3x1@-3..2", "i32:4 i64:6x1@0..3", "bool:2x2 i64:2={1,0}",
            "u8:9x2 i64:2x1@0..8", "f64:2x2 i64:1x2={0,1}", "f32:300x64 i64:100x1@0..299"}));
WHIMBREL_REGISTER(Kernel{.op = "GatherND", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
