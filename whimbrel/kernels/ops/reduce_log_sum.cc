// ReduceLogSum: y = ln of the sum over the axes; the empty sum gives -Inf.
//
// in   data   f16, f32, f64, bf16, before opset 28 also i32, i64, u32, u64
//      axes   i64 [n], optional, from opset 18; default: all axes
// attr axes   ints, before opset 18
//      keepdims  int, default 1
//      noop_with_empty_axes  int, default 0, from opset 18: without axes y = ln x
// out  reduced  type of data
// Integers wrap in the sum; their logarithm is cut as Cast does.
// Source: ONNX operator ReduceLogSum (1, 11, 13, 18, 28).

#include "whimbrel/kernels/ops/reduce_log.h"

namespace whimbrel {
namespace {

template <typename T>
struct LogSum {
  using W = WideOf<T>;

  static W Start() { return 0; }
  static W Step(W sum, W x) {
    if constexpr (std::is_integral_v<W>) {
      return WrapAdd(sum, x);
    } else {
      return sum + x;
    }
  }
  static W Finish(W sum, int64_t /*count*/) {
    return FromLogarithm<W>(std::log(static_cast<double>(sum)));
  }
};

WHIMBREL_REGISTER(ReduceLogSchema("ReduceLogSum", 1));
WHIMBREL_REGISTER(ReduceLogSchema("ReduceLogSum", 13));
WHIMBREL_REGISTER(ReduceLogSchema("ReduceLogSum", 18));
WHIMBREL_REGISTER(ReduceLogSchema("ReduceLogSum", 28));
WHIMBREL_REGISTER(Kernel{.op = "ReduceLogSum",
                         .name = "reference",
                         .run = ReduceReference<kFloatTypes | kWideIntegerTypes, LogSum>});

}  // namespace
}  // namespace whimbrel
