// ReduceMean: y = mean of x over the axes; integers are cut towards 0.
//
// in   data   f16, f32, f64, bf16, i32, i64, u32, u64
//      axes   i64 [n], optional, from opset 18; default: all axes
// attr axes   ints, before opset 18
//      keepdims  int, default 1
//      noop_with_empty_axes  int, default 0, from opset 18
// out  reduced  type of data
// Source: ONNX operator ReduceMean (1, 11, 13, 18). The mean of nothing is NaN, 0 for integers.

#include "whimbrel/kernels/ops/reduce.h"

namespace whimbrel {
namespace {

template <typename T>
struct Mean {
  using W = WideOf<T>;

  // Integers are summed up in 64 bits.
  using Sum = std::conditional_t<std::is_floating_point_v<W>, W,
                                 std::conditional_t<std::is_unsigned_v<W>, uint64_t, int64_t>>;
  static Sum Start() { return 0; }
  static Sum Step(Sum sum, W x) {
    if constexpr (std::is_integral_v<W>) {
      return WrapAdd(sum, static_cast<Sum>(x));
    } else {
      return sum + x;
    }
  }
  static W Finish(Sum sum, int64_t count) {
    if constexpr (std::is_integral_v<W>) {
      return count == 0 ? W{0} : static_cast<W>(sum / static_cast<Sum>(count));
    } else {
      return sum / static_cast<W>(count);
    }
  }
};

WHIMBREL_REGISTER(ReduceFoldSchema("ReduceMean", 1));
WHIMBREL_REGISTER(ReduceFoldSchema("ReduceMean", 13));
WHIMBREL_REGISTER(ReduceFoldSchema("ReduceMean", 18));
WHIMBREL_REGISTER(Kernel{.op = "ReduceMean",
                         .name = "reference",
                         .run = ReduceReference<kFloatTypes | kWideIntegerTypes, Mean>});

}  // namespace
}  // namespace whimbrel
