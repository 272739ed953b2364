// LpPool: y[n, c, p] = (sum over the taps of window p that lie on data of |x|^p)^(1/p).
//
// in   X     [batch, channels, spatial...]  f32 | f64 | f16, from opset 22 also bf16
// attr auto_pad, kernel_shape, pads, strides; from 18 ceil_mode, dilations
//      p     int, default 2
// out  Y     [batch, channels, windows...]
// Source: ONNX operator LpPool (2, 11, 18, 22).

#include "whimbrel/kernels/ops/lp_norm.h"
#include "whimbrel/kernels/ops/pool_common.h"
#include "whimbrel/kernels/reference.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  LpNorm::Check(c);
  InferPool(c);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const PoolGeometry g = PoolGeometryOf(call);
  const LpNorm norm(call.attrs());
  const int64_t windows = g.out_size(), plane_size = g.in_size();
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    T* y = call.y(0).data<T>();
    ParallelFor(call.y(0).elements(), 4096 / g.kernel_size() + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* from = x + i / windows * plane_size;
        double sum = 0;
        ForEachTap(g, Unflatten(i % windows, g.out, g.spatial),
                   [&](int64_t offset) { sum += norm.Power(Widen(from[offset])); });
        y[i] = Narrow<T>(norm.Root(sum));
      }
    });
  });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema s{.name = "LpPool",
             .since = since,
             .until = until,
             .inputs = {{.name = "X", .types = types, .group = 1}},
             .outputs = {{.name = "Y", .types = types, .group = 1}},
             .attributes = PoolAttributes({.ceil_mode = since >= 18, .dilations = since >= 18}),
             .infer = Infer,
             .cost = PoolCost,
             .samples = std::move(samples),
             .doc = "p-norm of each window"};
  s.attributes.push_back({.name = "p", .type = AttributeType::kInt, .note = "default 2"});
  return s;
}

constexpr TypeMask kOldTypes = kFloatTypes & ~TypeBit(DType::kBFloat16);

WHIMBREL_REGISTER(Schema(2, 11, kOldTypes, {"f32:1x3x8x8 kernel_shape=2,2 strides=2,2 opset=7"}));
WHIMBREL_REGISTER(Schema(11, 18, kOldTypes, {"f32:1x3x8x8 kernel_shape=3,3 pads=1,1,1,1"}));
WHIMBREL_REGISTER(Schema(
    18, 22, kOldTypes,
    {"f32:1x16x20x20 kernel_shape=3,3 strides=2,2 pads=1,1,1,1", "f32:1x1x1x1 kernel_shape=1,1",
     "f32:1x2x9x7 kernel_shape=3,2 p=1 auto_pad=SAME_UPPER",
     "f32:2x3x17 kernel_shape=3 strides=2 p=3", "f32:1x2x10x10 kernel_shape=2,3 dilations=3,2",
     "f32:1x2x4x4 kernel_shape=3,3 strides=2,2 ceil_mode=1", "f32:0x3x8x8 kernel_shape=2,2",
     "f32:1x1x5x5 kernel_shape=2,2 nan=1", "f64:1x2x4x5x6 kernel_shape=2,2,2",
     "f16:1x2x9x9 kernel_shape=3,3 auto_pad=SAME_LOWER"}));
WHIMBREL_REGISTER(Schema(22, INT_MAX, kFloatTypes,
                         {"f32:1x3x8x8 kernel_shape=2,2", "bf16:1x3x8x8 kernel_shape=2,2"}));
WHIMBREL_REGISTER(Kernel{.op = "LpPool", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
