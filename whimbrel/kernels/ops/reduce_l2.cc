// ReduceL2: y = sqrt(sum of x^2 over the axes); the empty norm is 0.
//
// in   data   f16, f32, f64, bf16, i32, i64, u32, u64
//      axes   i64 [n], optional, from opset 18; default: all axes
// attr axes   ints, before opset 18
//      keepdims  int, default 1
//      noop_with_empty_axes  int, default 0, from opset 18: without axes y = |x|
// out  reduced  type of data
// Source: ONNX operator ReduceL2 (1, 11, 13, 18). Integers are cut towards 0.

#include "whimbrel/kernels/ops/reduce.h"

namespace whimbrel {
namespace {

template <typename T>
struct L2 {
  using W = WideOf<T>;

  static double Start() { return 0; }
  static double Step(double sum, W x) {
    return sum + static_cast<double>(x) * static_cast<double>(x);
  }
  static W Finish(double sum, int64_t /*count*/) { return static_cast<W>(std::sqrt(sum)); }
};

WHIMBREL_REGISTER(ReduceFoldSchema("ReduceL2", 1));
WHIMBREL_REGISTER(ReduceFoldSchema("ReduceL2", 13));
WHIMBREL_REGISTER(ReduceFoldSchema("ReduceL2", 18));
WHIMBREL_REGISTER(Kernel{.op = "ReduceL2",
                         .name = "reference",
                         .run = ReduceReference<kFloatTypes | kWideIntegerTypes, L2>});

}  // namespace
}  // namespace whimbrel
