// ReduceSum: y = sum of x over the axes; integers wrap, the empty sum is 0.
//
// in   data   f16, f32, f64, bf16, i32, i64, u32, u64
//      axes   i64 [n], optional, from opset 13; default: all axes
// attr axes   ints, before opset 13
//      keepdims  int, default 1
//      noop_with_empty_axes  int, default 0, from opset 13
// out  reduced  type of data
// Source: ONNX operator ReduceSum (1, 11, 13).

#include "whimbrel/kernels/ops/reduce.h"

namespace whimbrel {
namespace {

template <typename T>
struct Sum {
  using W = WideOf<T>;

  static W Start() { return 0; }
  static W Step(W sum, W x) {
    if constexpr (std::is_integral_v<W>) {
      return WrapAdd(sum, x);
    } else {
      return sum + x;
    }
  }
  static W Finish(W sum, int64_t /*count*/) { return sum; }
};

WHIMBREL_REGISTER(ReduceFoldSchema("ReduceSum", 1));
WHIMBREL_REGISTER(ReduceFoldSchema("ReduceSum", 13));
WHIMBREL_REGISTER(Kernel{.op = "ReduceSum",
                         .name = "reference",
                         .run = ReduceReference<kFloatTypes | kWideIntegerTypes, Sum>});

}  // namespace
}  // namespace whimbrel
