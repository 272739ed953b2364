// reduce: what the Reduce operators share: schema, inference, and the loop over what is reduced.

#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "whimbrel/kernels/ops/axes.h"
#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {

// Where the elements of one output lie: `keep` walks the outputs, `drop` what is summed up in one.
struct ReducePlan {
  struct Walk {
    int rank = 0;
    std::array<int64_t, kMaxRank> dims{};
    std::array<int64_t, kMaxRank> strides{};
    int64_t count = 1;
    void Append(int64_t dim, int64_t stride);  // joins dims that lie one in the other
    int64_t Offset(int64_t index) const;
  };
  Walk keep;
  Walk drop;
  Shape out;
};
ReducePlan PlanReduce(const OpCall& call);

// ReduceMax and ReduceMin have versions 1, 12, 13, 18 and 20, which differ in types and in the
// opset from which axes are an input.
OpSchema ReduceExtremeSchema(std::string_view name, int since);
// The others have 1, 13 and 18; ReduceSum took its axes as an input from 13 on and has 1 and 13.
OpSchema ReduceFoldSchema(std::string_view name, int since);

// y = Finish(Step(... Step(Start(), x0) ..., xn), n): R gives, for an element type T,
//   Start() -> A, Step(A, WideOf<T>) -> A, Finish(A, count) -> WideOf<T>.
template <TypeMask mask, template <typename> class R>
void ReduceReference(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const ReducePlan plan = PlanReduce(call);
  call.ResizeOutput(0, call.x(0).dtype(), plan.out);
  DispatchReference<mask>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    T* y = call.y(0).data<T>();
    const auto& drop = plan.drop;
    const auto last = static_cast<size_t>(drop.rank > 0 ? drop.rank - 1 : 0);
    const int64_t length = drop.rank > 0 ? drop.dims[last] : 1;
    const int64_t step = drop.rank > 0 ? drop.strides[last] : 0;
    const int64_t rows = length == 0 ? 0 : drop.count / length;
    ParallelFor(plan.out.elements(), 1 + 16384 / (drop.count + 1), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* base = x + plan.keep.Offset(i);
        auto sum = R<T>::Start();
        for (int64_t row = 0; row < rows; ++row) {
          const T* from = base + drop.Offset(row * length);
          for (int64_t k = 0; k < length; ++k) sum = R<T>::Step(sum, Widen(from[k * step]));
        }
        y[i] = Narrow<T>(R<T>::Finish(sum, drop.count));
      }
    });
  });
}

}  // namespace whimbrel
