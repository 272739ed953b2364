// arg_extreme: what ArgMax and ArgMin share.

#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {

// Versions 1, 12 (select_last_index) and 13 (bf16).
OpSchema ArgExtremeSchema(std::string_view name, int since);

// Index of the best of x[0], x[step], ...: the first of equal ones, the last with `last`. The first
// NaN is better than any number, as numpy has it. better(a, b): a beats b.
template <typename T, typename F>
int64_t BestIndex(const T* x, int64_t length, int64_t step, bool last, F better) {
  int64_t best = 0;
  for (int64_t k = 1; k < length; ++k) {
    const auto now = Widen(x[k * step]);
    const auto old = Widen(x[best * step]);
    if constexpr (std::is_floating_point_v<WideOf<T>>) {
      if (std::isnan(old)) return best;
      if (std::isnan(now)) return k;
    }
    if (better(now, old) || (last && now == old)) best = k;
  }
  return best;
}

template <typename F>
void ArgExtremeReference(const OpCall& call, F better) {
  const Shape& in = call.x(0).shape();
  const int axis =
      in.rank() == 0 ? 0 : NormalizeAxis(call.attrs().Int("axis", 0), in.rank(), call.schema->name);
  const bool last = call.attrs().Int("select_last_index", 0) != 0;
  const int64_t length = in.rank() == 0 ? 1 : in[axis];
  const int64_t inner = in.rank() == 0 ? 1 : in.Product(axis + 1, in.rank());
  if (length == 0 && call.y(0).elements() > 0) {
    throw Error(Code::kInvalidData, std::string(call.schema->name) + ": the axis has no element");
  }
  DispatchReference<kNumericTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    int64_t* y = call.y(0).data<int64_t>();
    ParallelFor(call.y(0).elements(), 1 + 16384 / (length + 1), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = x + i / inner * length * inner + i % inner;
        y[i] = BestIndex(row, length, inner, last, better);
      }
    });
  });
}

}  // namespace whimbrel
