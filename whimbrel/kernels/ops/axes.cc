// Lists of axes and other small integers from attributes or inputs.

#include "whimbrel/kernels/ops/axes.h"

#include <algorithm>

#include <fmt/format.h>

namespace whimbrel {
namespace {

bool HasAttribute(const OpSchema& schema, std::string_view name) {
  return std::any_of(schema.attributes.begin(), schema.attributes.end(),
                     [&](const AttributeSpec& a) { return a.name == name; });
}

}  // namespace

IntegerList InferIntegers(const InferContext& c, std::string_view name, size_t i) {
  IntegerList list;
  if (HasAttribute(c.schema(), name)) {
    list.present = c.attrs().Has(name);
    const auto values = c.attrs().Ints(name);
    if (list.present) list.values.emplace(values.begin(), values.end());
  } else {
    list.present = c.has(i);
    if (list.present) {
      const auto& dims = c.in(i).dims;
      if (dims && dims->size() > 1) {
        c.Fail(fmt::format("{} must have rank 1, is {}", name, ToString(*dims)));
      }
      if (dims) {
        const Dim length = dims->empty() ? Dim(1) : dims->front();
        if (length.known()) list.count = length.value();
      }
      list.values = c.Integers(i);
    }
  }
  if (list.values) list.count = static_cast<int64_t>(list.values->size());
  return list;
}

uint32_t InferAxisMask(const InferContext& c, std::span<const int64_t> axes, int rank,
                       bool repeats_allowed) {
  uint32_t mask = 0;
  for (int64_t axis : axes) {
    if (rank > 31) c.Fail(fmt::format("rank {} is above the limit of {}", rank, kMaxRank));
    const uint32_t bit = 1U << NormalizeAxis(axis, rank, c.schema().name);
    if ((mask & bit) != 0 && !repeats_allowed) c.Fail(fmt::format("axis {} is named twice", axis));
    mask |= bit;
  }
  return mask;
}

RunIntegers ReadIntegers(const OpCall& call, std::string_view name, size_t i) {
  RunIntegers list;
  const auto take = [&](int64_t count, auto&& at) {
    list.present = true;
    if (count > static_cast<int64_t>(list.values.size())) {
      throw Error(Code::kUnsupported,
                  fmt::format("{}: {} has {} values, at most {} are possible", call.schema->name,
                              name, count, list.values.size()));
    }
    list.count = static_cast<int>(count);
    for (int64_t k = 0; k < count; ++k) list.values[static_cast<size_t>(k)] = at(k);
  };
  if (HasAttribute(*call.schema, name)) {
    const auto ints = call.attrs().Ints(name);
    if (call.attrs().Has(name)) {
      take(static_cast<int64_t>(ints.size()),
           [&](int64_t k) { return ints[static_cast<size_t>(k)]; });
    }
  } else if (call.has(i)) {
    take(call.x(i).elements(), [&](int64_t k) { return ElementAsInt64(call.x(i), k); });
  }
  return list;
}

uint32_t ReadAxisMask(const OpCall& call, const RunIntegers& axes, int rank) {
  uint32_t mask = 0;
  for (int i = 0; i < axes.count; ++i) {
    mask |= 1U << NormalizeAxis(axes[i], rank, call.schema->name);
  }
  return mask;
}

}  // namespace whimbrel
