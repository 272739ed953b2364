// Slice: y = x[start:end:step] on some axes, with Python's rules for negative and too large bounds.
//
// in   data    any type
//      starts, ends, axes, steps  i32 | i64 [n], from opset 10; axes default 0..n-1, steps 1
// attr starts, ends, axes         ints, before opset 10
// out  output
// Source: ONNX operator Slice (1, 10, 11, 13); negative axes are taken at 10 too.

#include <algorithm>
#include <initializer_list>
#include <limits>

#include <fmt/format.h>

#include "whimbrel/kernels/ops/axes.h"
#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/move.h"

namespace whimbrel {
namespace {

// Beyond this a bound means "to the end": exporters write the largest i32 or i64.
constexpr int64_t kFar = std::numeric_limits<int32_t>::max();

struct Range {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};

Range RangeOf(int64_t dim, int64_t start, int64_t end, int64_t step) {
  if (step == std::numeric_limits<int64_t>::min()) ++step;  // its negative is no int64
  if (dim == 0) return {.start = 0, .step = step, .count = 0};
  if (start < 0) start += dim;
  if (end < 0) end += dim;
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, dim);
    end = std::clamp<int64_t>(end, 0, dim);
    return {start, step, end > start ? (end - start - 1) / step + 1 : 0};
  }
  start = std::clamp<int64_t>(start, 0, dim - 1);
  end = std::clamp<int64_t>(end, -1, dim - 1);
  return {start, step, start > end ? (start - end - 1) / -step + 1 : 0};
}

// What remains of a dim that has no number yet.
Dim SymbolicCount(const Dim& dim, const Dim& start, const Dim& end, const Dim& step) {
  if (!start.known() || !step.known()) return {};
  const bool to_end = end.known() ? end.value() >= kFar : end.Same(dim);
  if (step.Is(1)) {
    if (start.value() >= 0 && to_end) return dim - start;
    if (start.Is(0) && end.known() && end.value() < 0 && end.value() > -kFar)
      return dim - Dim(-end.value());
  }
  if (step.Is(-1) && (start.Is(-1) || start.value() >= kFar) && end.known() &&
      end.value() <= -kFar) {
    return dim;
  }
  return {};
}

// The bounds as inference sees them: `values` is what is known, `present` whether there are any.
struct Bounds {
  bool present = false;
  std::optional<Dims> values;
  std::optional<int64_t> count;
};

Bounds InferBounds(InferContext& c, std::string_view name, size_t i) {
  const IntegerList list = InferIntegers(c, name, i);
  Bounds bounds{.present = list.present, .values = std::nullopt, .count = list.count};
  if (list.values) {
    bounds.values.emplace(list.values->begin(), list.values->end());
  } else if (list.present) {
    bounds.values = SmallElements(c, i);
    const auto length = bounds.values ? static_cast<int64_t>(bounds.values->size()) : 0;
    if (!bounds.count || *bounds.count != length) bounds.values.reset();
  }
  return bounds;
}

// The length that all lists share, as far as it is known.
std::optional<int64_t> CommonLength(const InferContext& c,
                                    std::initializer_list<std::optional<int64_t>> counts) {
  std::optional<int64_t> common;
  for (const auto& count : counts) {
    if (common && count && *common != *count) {
      c.Fail(
          fmt::format("starts, ends, axes and steps differ in length: {} and {}", *common, *count));
    }
    if (!common) common = count;
  }
  return common;
}

void Infer(InferContext& c) {
  const auto& in = c.in(0).dims;
  if (!in) return c.SetOut(0, c.in(0).dtype, std::nullopt);
  const auto rank = static_cast<int>(in->size());
  const bool by_input = c.schema().since >= 10;
  const Bounds starts = InferBounds(c, "starts", 1);
  const Bounds ends = InferBounds(c, "ends", 2);
  const IntegerList axes = InferIntegers(c, "axes", 3);
  const Bounds steps = by_input ? InferBounds(c, "steps", 4) : Bounds{};
  const auto count = CommonLength(c, {starts.count, ends.count, axes.count, steps.count});
  if (!count || (axes.present && !axes.values)) {
    return c.SetOut(0, c.in(0).dtype, Dims(in->size()));
  }
  if (*count > rank) {
    c.Fail(fmt::format("{} axes are sliced, data is {}", *count, ToString(*in)));
  }
  std::vector<int64_t> order;
  for (int64_t i = 0; i < *count; ++i) {
    order.push_back(axes.present ? (*axes.values)[static_cast<size_t>(i)] : i);
  }
  InferAxisMask(c, order, rank, false);

  Dims out = *in;
  std::optional<Dims> elements = rank == 1 ? SmallElements(c, 0) : std::nullopt;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto axis = static_cast<size_t>(NormalizeAxis(order[i], rank, "Slice"));
    const Dim start = starts.values ? (*starts.values)[i] : Dim();
    const Dim end = ends.values ? (*ends.values)[i] : Dim();
    const Dim step = !steps.present ? Dim(1) : (steps.values ? (*steps.values)[i] : Dim());
    if (step.Is(0)) c.Fail(fmt::format("the step of axis {} is 0", axis));
    const Dim& dim = (*in)[axis];
    if (!dim.known() || !start.known() || !end.known() || !step.known()) {
      out[axis] = SymbolicCount(dim, start, end, step);
      elements.reset();
      continue;
    }
    const Range range = RangeOf(dim.value(), start.value(), end.value(), step.value());
    out[axis] = range.count;
    if (elements && static_cast<int64_t>(elements->size()) == dim.value()) {
      Dims picked;
      for (int64_t k = 0; k < range.count; ++k) {
        picked.push_back((*elements)[static_cast<size_t>(range.start + k * range.step)]);
      }
      elements = std::move(picked);
    }
  }
  c.SetOut(0, c.in(0).dtype, std::move(out));
  c.out(0).elements = std::move(elements);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& in = call.x(0).shape();
  const RunIntegers starts = ReadIntegers(call, "starts", 1);
  const RunIntegers ends = ReadIntegers(call, "ends", 2);
  const RunIntegers axes = ReadIntegers(call, "axes", 3);
  const RunIntegers steps =
      call.schema->since >= 10 ? ReadIntegers(call, "steps", 4) : RunIntegers{};
  if (starts.count != ends.count || starts.count > in.rank() ||
      (axes.present && axes.count != starts.count) ||
      (steps.present && steps.count != starts.count)) {
    throw Error(Code::kInvalidData, "Slice: starts, ends, axes and steps differ in length");
  }
  std::array<Range, kMaxRank> ranges;
  Shape out = in;
  for (int d = 0; d < in.rank(); ++d) {
    ranges[static_cast<size_t>(d)] = {.start = 0, .step = 1, .count = in[d]};
  }
  for (int i = 0; i < starts.count; ++i) {
    const int axis = NormalizeAxis(axes.present ? axes[i] : i, in.rank(), "Slice");
    const int64_t step = steps.present ? steps[i] : 1;
    if (step == 0) throw Error(Code::kInvalidData, "Slice: a step is 0");
    ranges[static_cast<size_t>(axis)] = RangeOf(in[axis], starts[i], ends[i], step);
    out.set(axis, ranges[static_cast<size_t>(axis)].count);
  }
  call.ResizeOutput(0, call.x(0).dtype(), out);
  if (out.elements() == 0) return;
  const auto in_strides = in.Strides();
  const auto out_strides = out.Strides();
  StridedBlock block;
  for (size_t d = 0; d < static_cast<size_t>(in.rank()); ++d) {
    const Range& r = ranges[d];
    block.in_offset += r.start * in_strides[d];
    // A step beyond the axis is taken once only, and its product with the stride could overflow.
    block.Append(r.count, r.count > 1 ? r.step * in_strides[d] : 0, out_strides[d]);
  }
  CopyBlock(block, ItemSize(call.x(0).dtype()), call.x(0).raw(), call.y(0).raw());
}

// Only the part that is kept is read.
Cost SliceCost(const OpCall& call) {
  return {.flops = 0, .bytes = 2 * static_cast<double>(call.y(0).bytes())};
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema schema{
      .name = "Slice",
      .since = since,
      .until = until,
      .inputs = {{.name = "data", .types = types, .group = 1}},
      .outputs = {{.name = "output", .types = types, .group = 1}},
      .infer = Infer,
      .cost = SliceCost,
      .samples = std::move(samples),
  };
  if (since < 10) {
    schema.attributes = {{"starts", AttributeType::kInts, true, "negative: from the end"},
                         {"ends", AttributeType::kInts, true, "exclusive; negative: from the end"},
                         {"axes", AttributeType::kInts, false, "default 0..n-1"}};
  } else {
    schema.inputs.push_back({.name = "starts", .types = kIndexTypes, .group = 2});
    schema.inputs.push_back({.name = "ends", .types = kIndexTypes, .group = 2});
    schema.inputs.push_back({.name = "axes", .types = kIndexTypes, .optional = true, .group = 2});
    schema.inputs.push_back({.name = "steps", .types = kIndexTypes, .optional = true, .group = 2});
  }
  return schema;
}

WHIMBREL_REGISTER(Schema(1, 10, kAllTypesTo12,
                         {"f32:4x5 starts=1,0 ends=3,9223372036854775807",
                          "f16:2x9 starts=-3 ends=-1 axes=1"}));
WHIMBREL_REGISTER(Schema(10, 13, kAllTypesTo12,
                         {"f32:4x5 i64:1={1} i64:1={3}",
                          "i32:7 i32:1={-1} i32:1={-9} - i32:1={-2}"}));
WHIMBREL_REGISTER(
    Schema(13, INT_MAX, kAllTypes,
           {"f32:2x8x10 i64:1={2} i64:1={6} i64:1={1}",
            "f32:5 i64:1={-1} i64:1={-9223372036854775808} i64:1={0} i64:1={-1}",
            "f32:3x32x32 i64:2={0,1} i64:2={9223372036854775807,32} i64:2={1,2} i64:2={2,2}",
            "f32:4x5 i64:2={1,0} i64:2={3,5}", "f32:4x5 i64:1@1..1 i64:1@3..3",
            "f32:4x5 i64:1={3} i64:1={1}", "f32:0x5 i64:1={0} i64:1={9} i64:1={0} i64:1={-1}",
            "f32:4x5 i64:0 i64:0", "f16:7x17 i32:1={-5} i32:1={2147483647} i32:1={-1} i32:1={3}",
            "bf16:9 i64:1={8} i64:1={0} i64:1={0} i64:1={-3}", "i64:4 i64:1={1} i64:1={-1}",
            "u8:3x3 i64:2={-1,-1} i64:2={-9,-9} i64:2={1,0} i64:2={-1,-1}",
            "bool:6 i64:1={0} i64:1={6} - i64:1={2}", "f64:1 i64:1={0} i64:1={1}",
            "f32:1x255x80x80 i64:1={5} i64:1={85} i64:1={1}"}));
WHIMBREL_REGISTER(Kernel{.op = "Slice", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
