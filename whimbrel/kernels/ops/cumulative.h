// cumulative: what CumSum and CumProd share: schema, inference, and the walk along one axis.

#pragma once

#include <string_view>
#include <vector>

#include "whimbrel/kernels/ops/axes.h"
#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {

constexpr TypeMask kCumulativeTypes = kFloatTypes | kWideIntegerTypes;

inline void InferCumulative(InferContext& c) {
  const IntegerList axis = InferIntegers(c, "axis", 1);
  if (axis.count && *axis.count != 1) {
    c.Fail("axis must be a scalar, has " + std::to_string(*axis.count) + " values");
  }
  if (axis.values && c.in(0).dims)
    NormalizeAxis(axis.values->front(), c.in(0).rank(), c.schema().name);
  InferLikeFirst(c);
}

inline OpSchema CumulativeSchema(std::string_view name, int since, int until, TypeMask types,
                                 std::vector<std::string_view> samples) {
  return OpSchema{
      .name = name,
      .since = since,
      .until = until,
      .inputs = {{.name = "x", .types = types, .group = 1}, {.name = "axis", .types = kIndexTypes}},
      .outputs = {{.name = "y", .types = types, .group = 1}},
      .attributes = {{"exclusive", AttributeType::kInt, false,
                      "default 0; 1: y leaves out the x of its own place"},
                     {"reverse", AttributeType::kInt, false, "default 0; 1: from the end"}},
      .infer = InferCumulative,
      .samples = std::move(samples),
  };
}

// Running results of f along the axis from `start` on; float types are summed in double and rounded
// once at each place.
template <typename F>
void CumulativeReference(const OpCall& call, int start, F f) {
  const Shape& shape = call.x(0).shape();
  const RunIntegers axes = ReadIntegers(call, "axis", 1);
  if (axes.count != 1)
    throw Error(Code::kInvalidData, std::string(call.schema->name) + ": axis must be a scalar");
  const int axis = NormalizeAxis(axes[0], shape.rank(), call.schema->name);
  if (shape.elements() == 0) return;
  const bool exclusive = call.attrs().Int("exclusive", 0) != 0;
  const bool reverse = call.attrs().Int("reverse", 0) != 0;
  const int64_t length = shape[axis];
  const int64_t inner = shape.Product(axis + 1, shape.rank());
  DispatchReference<kCumulativeTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    T* y = call.y(0).data<T>();
    ParallelFor(shape.elements() / length, 1 + 16384 / length, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t first = row / inner * length * inner + row % inner;
        auto running = static_cast<WideOf<T>>(start);
        for (int64_t k = 0; k < length; ++k) {
          const int64_t at = first + (reverse ? length - 1 - k : k) * inner;
          const auto next = f(running, Widen(x[at]));
          y[at] = Narrow<T>(exclusive ? running : next);
          running = next;
        }
      }
    });
  });
}

}  // namespace whimbrel
