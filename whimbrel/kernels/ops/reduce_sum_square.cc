// ReduceSumSquare: y = sum of x^2 over the axes; integers wrap, the empty sum is 0.
//
// in   data   f16, f32, f64, bf16, i32, i64, u32, u64
//      axes   i64 [n], optional, from opset 18; default: all axes
// attr axes   ints, before opset 18
//      keepdims  int, default 1
//      noop_with_empty_axes  int, default 0, from opset 18: without axes y = x^2
// out  reduced  type of data
// Source: ONNX operator ReduceSumSquare (1, 11, 13, 18).

#include "whimbrel/kernels/ops/reduce.h"

namespace whimbrel {
namespace {

template <typename T>
struct SumSquare {
  using W = WideOf<T>;

  static W Start() { return 0; }
  static W Step(W sum, W x) {
    if constexpr (std::is_integral_v<W>) {
      return WrapAdd(sum, WrapMul(x, x));
    } else {
      return sum + x * x;
    }
  }
  static W Finish(W sum, int64_t /*count*/) { return sum; }
};

WHIMBREL_REGISTER(ReduceFoldSchema("ReduceSumSquare", 1));
WHIMBREL_REGISTER(ReduceFoldSchema("ReduceSumSquare", 13));
WHIMBREL_REGISTER(ReduceFoldSchema("ReduceSumSquare", 18));
WHIMBREL_REGISTER(Kernel{.op = "ReduceSumSquare",
                         .name = "reference",
                         .run = ReduceReference<kFloatTypes | kWideIntegerTypes, SumSquare>});

}  // namespace
}  // namespace whimbrel
