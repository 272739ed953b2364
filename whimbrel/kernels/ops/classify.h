// classify: what IsNaN and IsInf share: a truth about each element of a float tensor.

#pragma once

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {

// MakeSchema with bool output of the input's shape.
inline OpSchema ClassifySchema(ElementwiseSchema e) {
  e.out_types = kBoolType;
  e.infer = [](InferContext& c) { c.SetOut(0, DType::kBool, c.in(0).dims); };
  return MakeSchema(e);
}

// y = f(x), f from double to bool.
template <typename F>
void ClassifyReference(const OpCall& call, F f) {
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    bool* y = call.y(0).data<bool>();
    ParallelFor(call.y(0).elements(), 16384, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = f(static_cast<double>(x[i]));
    });
  });
}

}  // namespace whimbrel
