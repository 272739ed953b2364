// GlobalAveragePool: y[n, c] = mean over all spatial positions of x[n, c].
//
// in   X  [batch, channels, spatial...]  f32 | f64 | f16, from opset 22 also bf16
// out  Y  [batch, channels, 1...]
// Source: ONNX operator GlobalAveragePool (1, 22).

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
        double sum = 0;
        for (int64_t i = 0; i < size; ++i) sum += Widen(x[plane * size + i]);
        y[plane] = Narrow<T>(sum / static_cast<double>(size));
      }
    });
  });
}

WHIMBREL_REGISTER(GlobalPoolSchema("GlobalAveragePool", 1,
                                   {"f32:1x64x7x7", "f32:2x3x1x1", "f32:3x5x13x11", "f32:0x4x3x3",
                                    "f32:1x960x14x14", "f32:2x3x9", "f32:1x2x3x4x5",
                                    "f16:1x8x20x20", "f64:1x3x5x5", "f32:1x4x6x6 nan=1"}));
WHIMBREL_REGISTER(GlobalPoolSchema("GlobalAveragePool", 22, {"bf16:1x8x7x7", "f32:1x8x7x7"}));
WHIMBREL_REGISTER(Kernel{.op = "GlobalAveragePool", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
