// ReduceL1: y = sum of |x| over the axes; integers wrap, the empty norm is 0.
//
// in   data   f16, f32, f64, bf16, i32, i64, u32, u64
//      axes   i64 [n], optional, from opset 18; default: all axes
// attr axes   ints, before opset 18
//      keepdims  int, default 1
//      noop_with_empty_axes  int, default 0, from opset 18: without axes y = |x|
// out  reduced  type of data
// Source: ONNX operator ReduceL1 (1, 11, 13, 18).

#include "whimbrel/kernels/ops/reduce.h"

namespace whimbrel {
namespace {

template <typename T>
struct L1 {
  using W = WideOf<T>;

  static W Start() { return 0; }
  static W Step(W sum, W x) {
    if constexpr (std::is_integral_v<W>) {
      return IsNegative(x) ? WrapSub(sum, x) : WrapAdd(sum, x);
    } else {
      return sum + std::abs(x);
    }
  }
  static W Finish(W sum, int64_t /*count*/) { return sum; }
};

WHIMBREL_REGISTER(ReduceFoldSchema("ReduceL1", 1));
WHIMBREL_REGISTER(ReduceFoldSchema("ReduceL1", 13));
WHIMBREL_REGISTER(ReduceFoldSchema("ReduceL1", 18));
WHIMBREL_REGISTER(Kernel{.op = "ReduceL1",
                         .name = "reference",
                         .run = ReduceReference<kFloatTypes | kWideIntegerTypes, L1>});

}  // namespace
}  // namespace whimbrel
