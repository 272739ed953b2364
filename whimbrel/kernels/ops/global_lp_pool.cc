// GlobalLpPool: y[n, c] = (sum over all spatial positions of |x[n, c]|^p)^(1/p).
//
// in   X  [batch, channels, spatial...]  f32 | f64 | f16, from opset 22 also bf16
// attr p  int, default 2
// out  Y  [batch, channels, 1...]
// Source: ONNX operator GlobalLpPool (2, 22).

#include "whimbrel/kernels/ops/global_pool.h"
#include "whimbrel/kernels/ops/lp_norm.h"
#include "whimbrel/kernels/reference.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const int64_t size = GlobalPoolSizeOf(call).plane_size;
  const LpNorm norm(call.attrs());
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    T* y = call.y(0).data<T>();
    ParallelFor(call.y(0).elements(), 16384 / size + 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        double sum = 0;
        for (int64_t i = 0; i < size; ++i) sum += norm.Power(Widen(x[plane * size + i]));
        y[plane] = Narrow<T>(norm.Root(sum));
      }
    });
  });
}

OpSchema Schema(int since, std::vector<std::string_view> samples) {
  OpSchema s = GlobalPoolSchema("GlobalLpPool", since, std::move(samples));
  s.attributes = {{.name = "p", .type = AttributeType::kInt, .note = "default 2"}};
  // the check of p before GlobalPoolSchema's own inference
  static void (*const shapes)(InferContext&) = s.infer;
  s.infer = [](InferContext& c) {
    LpNorm::Check(c);
    shapes(c);
  };
  s.doc = "p-norm of each plane";
  return s;
}

WHIMBREL_REGISTER(Schema(2, {"f32:1x64x7x7", "f32:2x3x1x1 p=1", "f32:3x5x13x11 p=3", "f32:0x4x3x3",
                             "f32:2x3x9", "f64:1x3x5x5", "f16:1x8x20x20", "f32:1x4x6x6 nan=1"}));
WHIMBREL_REGISTER(Schema(22, {"bf16:1x8x7x7", "f32:1x8x7x7"}));
WHIMBREL_REGISTER(Kernel{.op = "GlobalLpPool", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
