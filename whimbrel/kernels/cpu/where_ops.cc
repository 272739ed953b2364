// Where of any type, row by row over merged dims, in either layout.

#include <algorithm>
#include <array>

#include "whimbrel/base/threads.h"
#include "whimbrel/kernels/cpu/hwy_elementwise.h"

namespace whimbrel {
namespace {

template <typename T>
void SelectRows(const ElementwisePlan& plan, const bool* condition, const T* x, const T* y,
                T* out) {
  const auto last = static_cast<size_t>(plan.rank) - 1;
  const int64_t columns = plan.dims[last];
  const std::array<int64_t, 3> step = {plan.strides[0][last], plan.strides[1][last],
                                       plan.strides[2][last]};
  ParallelFor(plan.elements, 65536, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const int64_t column = i % columns;
      std::array<int64_t, 3> at = {column * step[0], column * step[1], column * step[2]};
      int64_t rest = i / columns;
      for (size_t d = last; d-- > 0;) {
        const int64_t index = rest % plan.dims[d];
        rest /= plan.dims[d];
        for (size_t k = 0; k < 3; ++k) at[k] += index * plan.strides[k][d];
      }
      const int64_t count = std::min(columns - column, end - i);
      const bool* c = condition + at[0];
      const T* a = x + at[1];
      const T* b = y + at[2];
      for (int64_t j = 0; j < count; ++j) {
        // both are read, so that the choice needs no branch
        const T yes = a[j * step[1]];
        const T no = b[j * step[2]];
        out[i + j] = c[j * step[0]] ? yes : no;
      }
      i += count;
    }
  });
}

template <typename T>
void RunTyped(const OpCall& call) {
  SelectRows(PlanElementwise(call.y(0), call.in), call.x(0).data<bool>(), call.x(1).data<T>(),
             call.x(2).data<T>(), call.y(0).data<T>());
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  if (call.y(0).elements() == 0) return;
  switch (ItemSize(call.y(0).dtype())) {
    case 1:
      return RunTyped<uint8_t>(call);
    case 2:
      return RunTyped<uint16_t>(call);
    case 4:
      return RunTyped<uint32_t>(call);
    default:
      return RunTyped<uint64_t>(call);
  }
}

WHIMBREL_REGISTER(Kernel{
    .op = "Where", .name = "rows", .rank = 50, .layout = LayoutRule::kFollow, .run = Run});

}  // namespace
}  // namespace whimbrel
