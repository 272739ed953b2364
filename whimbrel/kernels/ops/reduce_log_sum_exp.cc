// ReduceLogSumExp: y = ln of the sum of e^x over the axes; the empty sum gives -Inf.
//
// in   data   f16, f32, f64, bf16, before opset 28 also i32, i64, u32, u64
//      axes   i64 [n], optional, from opset 18; default: all axes
// attr axes   ints, before opset 18
//      keepdims  int, default 1
//      noop_with_empty_axes  int, default 0, from opset 18: without axes y = x
// out  reduced  type of data
// The logarithm of integers is cut as Cast does.
// Source: ONNX operator ReduceLogSumExp (1, 11, 13, 18, 28).

#include <limits>

#include "whimbrel/kernels/ops/reduce_log.h"

namespace whimbrel {
namespace {

// The sum in units of e^largest, so that it never overflows.
struct ScaledSum {
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;
};

template <typename T>
struct LogSumExp {
  using W = WideOf<T>;

  static ScaledSum Start() { return {}; }
  static ScaledSum Step(ScaledSum s, W wide) {
    const auto x = static_cast<double>(wide);
    if (x == s.largest) {  // infinities too, whose difference is NaN
      s.sum += 1;
    } else if (x < s.largest) {
      s.sum += std::exp(x - s.largest);
    } else {  // a new largest, or NaN, which stays in the sum
      s.sum = s.sum * std::exp(s.largest - x) + 1;
      s.largest = x;
    }
    return s;
  }
  static W Finish(ScaledSum s, int64_t /*count*/) {
    return FromLogarithm<W>(s.largest + std::log(s.sum));
  }
};

WHIMBREL_REGISTER(ReduceLogSchema("ReduceLogSumExp", 1));
WHIMBREL_REGISTER(ReduceLogSchema("ReduceLogSumExp", 13));
WHIMBREL_REGISTER(ReduceLogSchema("ReduceLogSumExp", 18));
WHIMBREL_REGISTER(ReduceLogSchema("ReduceLogSumExp", 28));
WHIMBREL_REGISTER(Kernel{.op = "ReduceLogSumExp",
                         .name = "reference",
                         .run = ReduceReference<kFloatTypes | kWideIntegerTypes, LogSumExp>});

}  // namespace
}  // namespace whimbrel
