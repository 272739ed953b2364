// Schema, inference and plan of the Reduce operators.

#include "whimbrel/kernels/ops/reduce.h"

#include <fmt/format.h>

namespace whimbrel {
namespace {

std::optional<Dims> InferDims(InferContext& c) {
  const IntegerList axes = InferIntegers(c, "axes", 1);
  const bool keep = c.attrs().Int("keepdims", 1) != 0;
  const bool noop = c.attrs().Int("noop_with_empty_axes", 0) != 0;
  const auto& in = c.in(0).dims;
  // Without axes and dims kept away the result is a scalar, whatever the rank.
  const bool none = !axes.present || (axes.count && *axes.count == 0);
  if (none && !noop && !keep) return Dims{};
  if (!in) return std::nullopt;
  if (none) return noop ? *in : Dims(in->size(), Dim(1));
  if (!axes.values) {
    return keep ? std::optional<Dims>(Dims(in->size())) : std::nullopt;
  }
  const uint32_t mask = InferAxisMask(c, *axes.values, static_cast<int>(in->size()), true);
  Dims out;
  for (size_t d = 0; d < in->size(); ++d) {
    if (!HasAxis(mask, static_cast<int>(d))) {
      out.push_back((*in)[d]);
    } else if (keep) {
      out.emplace_back(1);
    }
  }
  return out;
}

// The product and the sum of a few integers: element counts are made so.
void InferElements(InferContext& c) {
  const bool product = c.schema().name == "ReduceProd";
  if ((!product && c.schema().name != "ReduceSum") || !IsInteger(c.in(0).dtype)) return;
  if (c.in(0).rank() != 1 || !c.out(0).dims) return;
  const Dims& out = *c.out(0).dims;
  if (!out.empty() && !out[0].Is(1)) return;
  const auto elements = SmallElements(c, 0);
  if (!elements) return;
  Dim total = product ? 1 : 0;
  for (const Dim& e : *elements) total = product ? total * e : total + e;
  c.out(0).elements = Dims{FitElement(total, c.in(0).dtype)};
}

void Infer(InferContext& c) {
  c.SetOut(0, c.in(0).dtype, InferDims(c));
  const IntegerList axes = InferIntegers(c, "axes", 1);
  const bool noop = c.attrs().Int("noop_with_empty_axes", 0) != 0;
  // Not when a single element stays as it is or axes are still open.
  if (!noop && (!axes.present || axes.values)) InferElements(c);
}

Cost ReduceCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops = static_cast<double>(call.x(0).elements());
  return cost;
}

}  // namespace

void ReducePlan::Walk::Append(int64_t dim, int64_t stride) {
  count *= dim;
  if (dim == 1) return;
  if (rank > 0) {
    const auto last = static_cast<size_t>(rank - 1);
    if (strides[last] == stride * dim) {
      dims[last] *= dim;
      strides[last] = stride;
      return;
    }
  }
  dims[static_cast<size_t>(rank)] = dim;
  strides[static_cast<size_t>(rank)] = stride;
  ++rank;
}

int64_t ReducePlan::Walk::Offset(int64_t index) const {
  int64_t offset = 0;
  for (auto d = static_cast<size_t>(rank); d-- > 0;) {
    offset += index % dims[d] * strides[d];
    index /= dims[d];
  }
  return offset;
}

ReducePlan PlanReduce(const OpCall& call) {
  const Shape& in = call.x(0).shape();
  const RunIntegers axes = ReadIntegers(call, "axes", 1);
  const bool keep = call.attrs().Int("keepdims", 1) != 0;
  const bool noop = call.attrs().Int("noop_with_empty_axes", 0) != 0;
  const bool none = !axes.present || axes.count == 0;
  const uint32_t mask = none ? (noop ? 0U : ~0U) : ReadAxisMask(call, axes, in.rank());
  ReducePlan plan;
  std::array<int64_t, kMaxRank> dims{};
  size_t rank = 0;
  const auto strides = in.Strides();
  for (int d = 0; d < in.rank(); ++d) {
    const int64_t stride = strides[static_cast<size_t>(d)];
    if (HasAxis(mask, d)) {
      plan.drop.Append(in[d], stride);
      if (keep) dims[rank++] = 1;
    } else {
      plan.keep.Append(in[d], stride);
      dims[rank++] = in[d];
    }
  }
  plan.out = Shape(std::span<const int64_t>(dims.data(), rank));
  return plan;
}

namespace {

OpSchema MakeSchema(std::string_view name, int since, int until, TypeMask types, bool axes_input) {
  OpSchema schema{
      .name = name,
      .since = since,
      .until = until,
      .inputs = {{.name = "data", .types = types, .group = 1}},
      .outputs = {{.name = "reduced", .types = types, .group = 1}},
      .attributes = {{"keepdims", AttributeType::kInt, false, "default 1: reduced dims stay as 1"}},
      .infer = Infer,
      .cost = ReduceCost,
  };
  if (axes_input) {
    schema.inputs.push_back({.name = "axes", .types = TypeBit(DType::kInt64), .optional = true});
    schema.attributes.push_back({"noop_with_empty_axes", AttributeType::kInt, false,
                                 "default 0: no axes = all axes; 1: no axes = none"});
    schema.samples = {"f32:3x4x5 i64:1={1}", "i32:5x6 i64:1={0}"};
  } else {
    schema.attributes.push_back(
        {"axes", AttributeType::kInts, false, "default all; in [-rank, rank)"});
    schema.samples = {"f32:3x4x5 axes=1", "f32:3x4", "i32:2x3x4 axes=0,2 keepdims=0",
                      "f16:5x7 axes=-1"};
  }
  if ((types & kBFloat16Type) != 0 && !axes_input) schema.samples.push_back("bf16:3x4 axes=0");
  if (until == INT_MAX) {
    schema.samples.insert(
        schema.samples.end(),
        {"f32:1x64x40x40 i64:2={2,3}", "f32:2x3x4 i64:2={-1,0} keepdims=0",
         "f32:2x3 i64:0 noop_with_empty_axes=1", "f32:2x3 - noop_with_empty_axes=1",
         "f32:2x3 i64:0", "f32:2x3 i64:1@0..1", "f32:", "f32: i64:0 keepdims=0",
         "f32:3x0x2 i64:1={1}", "f32:0x3 i64:1={1}", "i64:2x0 i64:1={1}", "f16:7x17 i64:1={1}",
         "bf16:9x5 i64:1={0} keepdims=0", "f64:4x4x4 i64:2={0,2}", "i64:3 keepdims=0",
         "u32:4x2 i64:1={1}", "u64:1x1", "f32:4x6 i64:1={1} nan=1", "f32:8x1024 i64:1={1}"});
  }
  return schema;
}

// All Reduce operators lack the narrow integers in their first version.
constexpr TypeMask kTypesTo12 = kFloatTypesTo12 | kWideIntegerTypes;
constexpr TypeMask kTypes = kFloatTypes | kWideIntegerTypes;
constexpr TypeMask kByteTypes = TypeBit(DType::kInt8) | TypeBit(DType::kUint8);

}  // namespace

OpSchema ReduceExtremeSchema(std::string_view name, int since) {
  OpSchema schema;
  switch (since) {
    case 1:
      return MakeSchema(name, 1, 12, kTypesTo12, false);
    case 12:
      return MakeSchema(name, 12, 13, kTypesTo12 | kByteTypes, false);
    case 13:
      return MakeSchema(name, 13, 18, kTypes | kByteTypes, false);
    case 18:
      return MakeSchema(name, 18, 20, kTypes | kByteTypes, true);
    default:
      break;
  }
  WHIMBREL_CHECK(since == 20);
  schema = MakeSchema(name, 20, INT_MAX, kTypes | kByteTypes | kBoolType, true);
  schema.samples.insert(schema.samples.end(), {"i8:3x5@-128..127 i64:1={1}", "u8:3x5 i64:1={0}",
                                               "bool:3x5 i64:1={1}", "bool:3x0 i64:1={1}"});
  return schema;
}

OpSchema ReduceFoldSchema(std::string_view name, int since) {
  const bool sum = name == "ReduceSum";
  if (since == 1) return MakeSchema(name, 1, 13, kTypesTo12, false);
  if (since == 13 && !sum) return MakeSchema(name, 13, 18, kTypes, false);
  WHIMBREL_CHECK(since == (sum ? 13 : 18));
  return MakeSchema(name, since, INT_MAX, kTypes, true);
}

}  // namespace whimbrel
