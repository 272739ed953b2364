// Pool geometry and inference.

#include "whimbrel/kernels/ops/pool_common.h"

#include <fmt/format.h>

namespace whimbrel {
namespace {

WindowAttributes ReadPool(std::string_view op, const Attributes& attributes, int rank) {
  WindowAttributes window = ReadWindowAttributes(op, attributes, rank - 2);
  for (int axis = 0; axis < window.spatial; ++axis) {
    const auto i = static_cast<size_t>(axis);
    if (window.kernel[i] == 0)
      throw Error(Code::kInvalidData, fmt::format("{}: kernel_shape is empty", op));
    const int64_t extent = window.extent(axis);
    if (window.pad_begin[i] >= extent || window.pad_end[i] >= extent) {
      throw Error(
          Code::kInvalidData,
          fmt::format("{}: pads {} and {} of spatial axis {} must be below the window of {}", op,
                      window.pad_begin[i], window.pad_end[i], axis, extent),
          "a window on padding alone has no value");
    }
  }
  return window;
}

}  // namespace

PoolGeometry PoolGeometryOf(const OpCall& call) {
  const Shape& x = call.x(0).shape();
  const std::string_view op = call.schema->name;
  PoolGeometry g{MakeWindowGeometry(op, ReadPool(op, call.attrs(), x.rank()), x.dims().subspan(2))};
  g.planes = x[0] * x[1];
  return g;
}

void InferPool(InferContext& c) {
  std::optional<Dims> out;
  if (c.in(0).dims) {
    const Dims& x = *c.in(0).dims;
    const auto window = ReadPool(c.schema().name, c.attrs(), static_cast<int>(x.size()));
    out = x;
    for (int axis = 0; axis < window.spatial; ++axis) {
      const auto i = static_cast<size_t>(axis) + 2;
      (*out)[i] = WindowOutput(c.schema().name, window, axis, x[i]);
    }
  }
  c.SetOut(0, c.in(0).dtype, out);
  c.SetOut(1, DType::kInt64, out);
}

Cost PoolCost(const OpCall& call) {
  const PoolGeometry g = PoolGeometryOf(call);
  Cost cost = DefaultCost(call);
  cost.flops = static_cast<double>(call.y(0).elements()) * static_cast<double>(g.kernel_size());
  return cost;
}

std::vector<AttributeSpec> PoolAttributes(const PoolVersion& version) {
  std::vector<AttributeSpec> a{
      {.name = "auto_pad",
       .type = AttributeType::kString,
       .note = "NOTSET (default), VALID, SAME_UPPER, SAME_LOWER"},
      {.name = "kernel_shape", .type = AttributeType::kInts, .required = true},
      {.name = "pads", .type = AttributeType::kInts, .note = "begins, then ends; default 0"},
      {.name = "strides", .type = AttributeType::kInts, .note = "default 1"}};
  if (version.storage_order) {
    a.push_back({.name = "storage_order",
                 .type = AttributeType::kInt,
                 .note = "of indices: 0 row-major, 1 column-major"});
  }
  if (version.ceil_mode)
    a.push_back(
        {.name = "ceil_mode", .type = AttributeType::kInt, .note = "1: count windows rounding up"});
  if (version.dilations)
    a.push_back({.name = "dilations", .type = AttributeType::kInts, .note = "default 1"});
  if (version.count_include_pad) {
    a.push_back({.name = "count_include_pad",
                 .type = AttributeType::kInt,
                 .note = "1: padding counts as zeros"});
  }
  return a;
}

}  // namespace whimbrel
