// ReduceProd: y = product of x over the axes; integers wrap, the empty product is 1.
//
// in   data   f16, f32, f64, bf16, i32, i64, u32, u64
//      axes   i64 [n], optional, from opset 18; default: all axes
// attr axes   ints, before opset 18
//      keepdims  int, default 1
//      noop_with_empty_axes  int, default 0, from opset 18
// out  reduced  type of data
// Source: ONNX operator ReduceProd (1, 11, 13, 18).

#include "whimbrel/kernels/ops/reduce.h"

namespace whimbrel {
namespace {

template <typename T>
struct Prod {
  using W = WideOf<T>;

  static W Start() { return 1; }
  static W Step(W product, W x) {
    if constexpr (std::is_integral_v<W>) {
      return WrapMul(product, x);
    } else {
      return product * x;
    }
  }
  static W Finish(W product, int64_t /*count*/) { return product; }
};

WHIMBREL_REGISTER(ReduceFoldSchema("ReduceProd", 1));
WHIMBREL_REGISTER(ReduceFoldSchema("ReduceProd", 13));
WHIMBREL_REGISTER(ReduceFoldSchema("ReduceProd", 18));
WHIMBREL_REGISTER(Kernel{.op = "ReduceProd",
                         .name = "reference",
                         .run = ReduceReference<kFloatTypes | kWideIntegerTypes, Prod>});

}  // namespace
}  // namespace whimbrel
