// GlobalMaxPool: y[n, c] = max over all spatial positions of x[n, c]; NaN wins.
//
// in   X  [batch, channels, spatial...]  f32 | f64 | f16, from opset 22 also bf16
// out  Y  [batch, channels, 1...]
// Source: ONNX operator GlobalMaxPool (1, 22).

#include <cmath>

#include "whimbrel/kernels/ops/global_pool.h"
#include "whimbrel/kernels/reference.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const auto [planes, plane_size] = GlobalPoolSizeOf(call);
  const int64_t size = plane_size;
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    T* y = call.y(0).data<T>();
    ParallelFor(call.y(0).elements(), 16384 / size + 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        double best = Widen(x[plane * size]);
        for (int64_t i = 1; i < size; ++i) {
          const double value = Widen(x[plane * size + i]);
          if (value > best || std::isnan(value)) best = value;
        }
        y[plane] = Narrow<T>(best);
      }
    });
  });
}

WHIMBREL_REGISTER(GlobalPoolSchema("GlobalMaxPool", 1,
                                   {"f32:1x64x7x7", "f32:2x3x1x1", "f32:3x5x13x11", "f32:0x4x3x3",
                                    "f32:1x960x14x14", "f32:2x3x9", "f32:1x2x3x4x5",
                                    "f16:1x8x20x20", "f64:1x3x5x5@-9..-5"}));
WHIMBREL_REGISTER(GlobalPoolSchema("GlobalMaxPool", 22, {"bf16:1x8x7x7", "f32:1x8x7x7"}));
WHIMBREL_REGISTER(Kernel{.op = "GlobalMaxPool", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
