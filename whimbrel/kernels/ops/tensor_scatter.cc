// TensorScatter: present = past with update written into it along the axis, from write_indices[b]
// on in batch entry b.
//
// in   past_cache     [batch, ..., max sequence, ...]  any type
//      update         the same but for the axis, where it is at most as long
//      write_indices  [batch] i64, optional, default 0
// attr axis  int, default -2, not the batch
//      mode  linear (default): the update must fit; circular: it wraps around
// out  present_cache  like past_cache
// Source: ONNX operator TensorScatter (24).

#include <cstring>

#include <fmt/format.h>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

bool Circular(std::string_view op, const Attributes& attributes) {
  const std::string_view mode = attributes.String("mode", "linear");
  if (mode != "linear" && mode != "circular")
    throw Error(Code::kInvalidData, fmt::format("{}: mode \"{}\" is not known", op, mode));
  return mode == "circular";
}

int AxisOf(std::string_view op, const Attributes& attributes, int rank) {
  const int axis = NormalizeAxis(attributes.Int("axis", -2), rank, op);
  if (axis == 0)
    throw Error(Code::kInvalidData, fmt::format("{}: axis 0 is that of the batch", op));
  return axis;
}

void Infer(InferContext& c) {
  Circular(c.schema().name, c.attrs());
  InferLikeFirst(c);
  if (!c.in(0).dims) return;
  const Dims& past = *c.in(0).dims;
  const auto axis = static_cast<size_t>(AxisOf(c.schema().name, c.attrs(), c.in(0).rank()));
  if (c.in(1).dims) {
    const Dims& update = *c.in(1).dims;
    bool fits = update.size() == past.size();
    for (size_t i = 0; fits && i < past.size(); ++i) {
      if (!update[i].known() || !past[i].known()) continue;
      fits = i == axis ? update[i].value() <= past[i].value() : update[i].Is(past[i].value());
    }
    if (!fits) {
      c.Fail(fmt::format("update {} does not fit past_cache {} along axis {}", ToString(update),
                         ToString(past), axis));
    }
  }
  if (c.has(2) && c.in(2).dims) {
    const Dims& indices = *c.in(2).dims;
    if (indices.size() != 1 ||
        (indices[0].known() && past[0].known() && !indices[0].Is(past[0].value()))) {
      c.Fail(
          fmt::format("write_indices must be [{}], is {}", ToString(past[0]), ToString(indices)));
    }
  }
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& past = call.x(0).shape();
  const int axis = AxisOf(call.schema->name, call.attrs(), past.rank());
  const bool circular = Circular(call.schema->name, call.attrs());
  const int64_t most = past[axis], length = call.x(1).shape()[axis];
  const int64_t* indices = call.has(2) ? call.x(2).data<int64_t>() : nullptr;
  for (int64_t b = 0; indices != nullptr && b < past[0]; ++b) {
    if (indices[b] >= 0 && (circular || indices[b] <= most - length)) continue;
    throw Error(Code::kInvalidData, fmt::format("{}: {} rows do not fit at row {} of {}",
                                                call.schema->name, length, indices[b], most));
  }
  auto* const out = call.y(0).data<std::byte>();
  const auto* from = call.x(1).data<std::byte>();
  if (call.x(0).bytes() == 0) return;
  if (call.y(0).raw() != call.x(0).raw()) std::memcpy(out, call.x(0).raw(), call.x(0).bytes());
  if (call.x(1).bytes() == 0) return;
  const auto row_bytes =
      past.Product(axis + 1, past.rank()) * static_cast<int64_t>(ItemSize(call.x(0).dtype()));
  const int64_t prefixes = past.Product(0, axis), per_batch = prefixes / past[0];
  ParallelFor(prefixes, 16, [&](int64_t begin, int64_t end) {
    for (int64_t prefix = begin; prefix < end; ++prefix) {
      const int64_t start = indices == nullptr ? 0 : indices[prefix / per_batch] % most;
      for (int64_t row = 0; row < length; ++row) {
        const int64_t at = prefix * most + (start + row) % most;
        std::memcpy(out + at * row_bytes, from + (prefix * length + row) * row_bytes,
                    static_cast<size_t>(row_bytes));
      }
    }
  });
}

WHIMBREL_REGISTER(OpSchema{
    .name = "TensorScatter",
    .since = 24,
    .inputs = {{.name = "past_cache", .types = kAllTypes, .group = 1},
               {.name = "update", .types = kAllTypes, .group = 1},
               {.name = "write_indices", .types = TypeBit(DType::kInt64), .optional = true}},
    .outputs = {{.name = "present_cache", .types = kAllTypes, .group = 1}},
    .attributes = {{.name = "axis", .type = AttributeType::kInt, .note = "default -2"},
                   {.name = "mode",
                    .type = AttributeType::kString,
                    .note = "linear (default) or circular"}},
    .infer = Infer,
    .cost = MoveCost,
    .samples = {"f32:2x3x8x4 f32:2x3x2x4 i64:2={1,6}", "f32:2x3x8x4 f32:2x3x2x4",
                "f32:2x3x8x4 f32:2x3x3x4 i64:2={7,100} mode=circular", "f32:1x1x1 f32:1x1x1",
                "i8:2x5 i8:2x3 i64:2={2,0} axis=1", "f16:2x8x3x4 f16:2x2x3x4 i64:2={0,6} axis=-3",
                "bool:2x3x8x4 bool:2x3x0x4", "i64:0x3x8x4 i64:0x3x2x4 i64:0",
                "f32:1x8x256x64 f32:1x8x1x64 i64:1={100}"},
    .doc = "an update written into a cache"});
WHIMBREL_REGISTER(Kernel{.op = "TensorScatter", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
