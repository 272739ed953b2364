// scatter: what the Scatter operators share: the copy of data and how an update joins it.

#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {

enum class ScatterReduction : uint8_t { kNone, kAdd, kMul, kMax, kMin };

// Of the attribute reduction; kInvalidData for a word that is not known at this version.
ScatterReduction ReadScatterReduction(const OpSchema& schema, const Attributes& attributes);
// The attribute's entry, for schemas from opset 16 on.
AttributeSpec ScatterReductionSpec();

// Output 0 = data, then output[offset] = f(output[offset], updates[i]) for each (i, offset) that
// `walk` names, in its order: of two updates of one place the last wins. NaN wins over max and min.
// bool adds as or and multiplies as and.
template <typename Walk>
void ScatterReference(const OpCall& call, Walk&& walk);

// Scatter and ScatterElements: one element at a time, indices on one axis.
void InferScatterElements(InferContext& c);
void RunScatterElements(const OpCall& call, std::span<std::byte> workspace, Stream& stream);
OpSchema ScatterElementsSchema(std::string_view name, int since, int until, TypeMask types,
                               std::vector<std::string_view> samples);
// Reads and writes of the updated elements come on top of the copy.
Cost ScatterCost(const OpCall& call);

template <typename T>
T Scattered(ScatterReduction reduction, T old, T update) {
  if constexpr (std::is_same_v<T, bool>) {
    const bool either = reduction == ScatterReduction::kAdd || reduction == ScatterReduction::kMax;
    return reduction == ScatterReduction::kNone ? update : either ? old || update : old && update;
  } else {
    const auto a = Widen(old);
    const auto b = Widen(update);
    using W = WideOf<T>;
    switch (reduction) {
      case ScatterReduction::kNone:
        return update;
      case ScatterReduction::kAdd:
        if constexpr (std::is_integral_v<W>)
          return WrapAdd(a, b);
        else
          return Narrow<T>(a + b);
      case ScatterReduction::kMul:
        if constexpr (std::is_integral_v<W>)
          return WrapMul(a, b);
        else
          return Narrow<T>(a * b);
      case ScatterReduction::kMax:
        return b > a || b != b ? update : old;
      case ScatterReduction::kMin:
        return b < a || b != b ? update : old;
    }
    return update;
  }
}

template <typename Walk>
void ScatterReference(const OpCall& call, Walk&& walk) {
  const ScatterReduction reduction = ReadScatterReduction(*call.schema, call.attrs());
  DispatchReference<kAllTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* data = call.x(0).data<T>();
    const T* updates = call.x(2).data<T>();
    T* y = call.y(0).data<T>();
    std::copy(data, data + call.x(0).elements(), y);
    walk([&](int64_t i, int64_t offset) {
      y[offset] = Scattered(reduction, y[offset], updates[i]);
    });
  });
}

}  // namespace whimbrel
