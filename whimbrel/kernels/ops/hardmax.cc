// Hardmax: y = 1 at the first largest element of each row, 0 elsewhere.
//
// in   input   f32 | f64 | f16 | bf16
// attr axis    int: from 13 on (default -1) the axis is the row; before (default 1) all dims from
//              it on are
// out  output  like input
// NaN counts as the largest, as in ArgMax. Source: ONNX operator Hardmax (1, 11, 13).

#include "whimbrel/kernels/ops/arg_extreme.h"
#include "whimbrel/kernels/ops/softmax_common.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  if (call.y(0).elements() == 0) return;
  const SoftmaxRows r = SoftmaxRowsOf(call);
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    ParallelFor(r.rows, 1 + 16384 / r.length, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t first = row / r.inner * r.length * r.inner + row % r.inner;
        const T* x = call.x(0).data<T>() + first;
        T* y = call.y(0).data<T>() + first;
        const int64_t best =
            BestIndex(x, r.length, r.inner, false, [](auto a, auto b) { return a > b; });
        for (int64_t e = 0; e < r.length; ++e) y[e * r.inner] = Narrow<T>(e == best ? 1 : 0);
      }
    });
  });
}

WHIMBREL_REGISTER(SoftmaxSchema("Hardmax", 1, {"f32:3x4", "f32:2x3x4 opset=7", "f16:5x2 axis=0"}));
WHIMBREL_REGISTER(SoftmaxSchema("Hardmax", 11, {"f32:2x3x4", "f32:2x3x4 axis=-1", "f64:3x2"}));
WHIMBREL_REGISTER(SoftmaxSchema("Hardmax", 13,
                                {"f32:3x16", "f32:1", "f32:1x1", "f32:0x8", "f32:8x0",
                                 "f32:2x3x4 axis=1", "f32:2x3x4 axis=0", "f16:7x17",
                                 "bf16:7x17 axis=0", "f64:3x5", "f32:1x64x400", "f32:8 nan=1",
                                 "f32:2x3={1,1,1,-0,0,-1}"}));
WHIMBREL_REGISTER(Kernel{.op = "Hardmax", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
