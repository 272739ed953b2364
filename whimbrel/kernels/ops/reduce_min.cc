// ReduceMin: y = smallest of x over the axes; NaN wins.
//
// in   data   f16, f32, f64, bf16, i32, i64, u32, u64,
//          i8 and u8 from 12, bool from 20
//      axes   i64 [n], optional, from opset 18; default: all axes
// attr axes   ints, before opset 18
//      keepdims  int, default 1
//      noop_with_empty_axes  int, default 0, from opset 18
// out  reduced  type of data
// Source: ONNX operator ReduceMin (1, 11, 12, 13, 18, 20).

#include "whimbrel/kernels/ops/reduce.h"

namespace whimbrel {
namespace {

template <typename T>
struct Min {
  using W = WideOf<T>;

  // The smallest of nothing: infinity, the type's greatest value where it has none.
  static W Start() {
    if constexpr (std::is_floating_point_v<W>) {
      return std::numeric_limits<W>::infinity();
    } else {
      return std::numeric_limits<W>::max();
    }
  }
  static W Step(W best, W x) {
    if constexpr (std::is_floating_point_v<W>) {
      if (std::isnan(x)) return x;
    }
    return x < best ? x : best;
  }
  static W Finish(W best, int64_t /*count*/) { return best; }
};

WHIMBREL_REGISTER(ReduceExtremeSchema("ReduceMin", 1));
WHIMBREL_REGISTER(ReduceExtremeSchema("ReduceMin", 12));
WHIMBREL_REGISTER(ReduceExtremeSchema("ReduceMin", 13));
WHIMBREL_REGISTER(ReduceExtremeSchema("ReduceMin", 18));
WHIMBREL_REGISTER(ReduceExtremeSchema("ReduceMin", 20));
WHIMBREL_REGISTER(Kernel{
    .op = "ReduceMin", .name = "reference", .run = ReduceReference<kAllTypes, Min>});

}  // namespace
}  // namespace whimbrel
