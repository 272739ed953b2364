// AveragePool: y[n, c, p] = sum of the taps of window p on data / number of taps that count.
//
// in   X  [batch, channels, spatial...]  f32 | f64 | f16, from opset 22 also bf16
// attr auto_pad, kernel_shape, pads, strides, count_include_pad (0: taps on data count; 1: also
// those on
//      the declared padding); from 10 ceil_mode; from 19 dilations
// out  Y  [batch, channels, windows...]
// Source: ONNX operator AveragePool (1, 7, 10, 11, 19, 22). With ceil_mode a window may hang over
// the padding too; those taps never count.

#include <algorithm>

#include "whimbrel/kernels/ops/pool_common.h"
#include "whimbrel/kernels/reference.h"

namespace whimbrel {
namespace {

constexpr TypeMask kOldTypes = kFloatTypes & ~TypeBit(DType::kBFloat16);

// Taps of the window on data or declared padding.
int64_t PaddedCount(const PoolGeometry& g, const SpatialArray& position) {
  int64_t count = 1;
  for (int axis = 0; axis < g.spatial; ++axis) {
    const auto i = static_cast<size_t>(axis);
    const int64_t room =
        g.in[i] + g.pad_end[i] - g.Start(axis, position[i]);  // > 0: ceil_mode drops the rest
    count *= std::clamp<int64_t>((room + g.dilation[i] - 1) / g.dilation[i], 0, g.kernel[i]);
  }
  return count;
}

template <typename T>
void RunTyped(const OpCall& call) {
  const PoolGeometry g = PoolGeometryOf(call);
  const bool include_pad = call.attrs().Int("count_include_pad", 0) != 0;
  const T* x = call.x(0).template data<T>();
  T* y = call.y(0).template data<T>();
  const int64_t windows = g.out_size(), plane_size = g.in_size();
  ParallelFor(call.y(0).elements(), 4096 / g.kernel_size() + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* from = x + i / windows * plane_size;
      const SpatialArray position = Unflatten(i % windows, g.out, g.spatial);
      double sum = 0;
      int64_t count = 0;
      ForEachTap(g, position, [&](int64_t offset) {
        sum += Widen(from[offset]);
        ++count;
      });
      if (include_pad) count = PaddedCount(g, position);
      y[i] = Narrow<T>(count == 0 ? 0 : sum / static_cast<double>(count));
    }
  });
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() { RunTyped<T>(call); });
}

OpSchema Schema(int since, int until, TypeMask types, const PoolVersion& version,
                std::vector<std::string_view> samples) {
  return {
      .name = "AveragePool",
      .since = since,
      .until = until,
      .inputs = {{.name = "X", .types = types, .group = 1}},
      .outputs = {{.name = "Y", .types = types, .group = 1}},
      .attributes = PoolAttributes(version),
      .infer = InferPool,
      .cost = PoolCost,
      .samples = std::move(samples),
      .doc = "mean of each window",
  };
}

WHIMBREL_REGISTER(
    Schema(7, 10, kOldTypes, {.count_include_pad = true},
           {"f32:1x3x8x8 kernel_shape=2,2 strides=2,2",
            "f32:1x3x7x7 kernel_shape=3,3 strides=2,2 pads=1,1,1,1 count_include_pad=1"}));
constexpr PoolVersion kWithCeil{.ceil_mode = true, .count_include_pad = true};
WHIMBREL_REGISTER(Schema(10, 11, kOldTypes, kWithCeil,
                         {"f32:1x3x6x6 kernel_shape=3,3 strides=2,2 ceil_mode=1",
                          "f32:1x3x1x4 kernel_shape=3,3 strides=3,3 ceil_mode=1"}));
WHIMBREL_REGISTER(
    Schema(11, 19, kOldTypes, kWithCeil,
           {"f32:1x1x4x4={1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16} kernel_shape=3,3 strides=2,2 "
            "pads=1,1,1,1 ceil_mode=1 "
            "count_include_pad=1",
            "f32:1x2x9 kernel_shape=7 strides=3 pads=3,3 ceil_mode=1 count_include_pad=1",
            "f32:1x2x9 kernel_shape=7 strides=3 pads=3,3 ceil_mode=1",
            "f32:1x16x28x28 kernel_shape=2,2 strides=2,2", "f32:1x1x1x1 kernel_shape=1,1",
            "f32:2x3x7x5 kernel_shape=3,3 pads=1,1,1,1",
            "f32:1x3x7x7 kernel_shape=2,2 strides=2,2 auto_pad=SAME_UPPER",
            "f32:1x3x7x7 kernel_shape=2,2 strides=2,2 auto_pad=SAME_LOWER count_include_pad=1",
            "f32:1x3x7x7 kernel_shape=3,3 strides=2,2 auto_pad=VALID",
            "f32:1x2x4x5x6 kernel_shape=2,3,2 strides=1,2,2", "f32:0x3x8x8 kernel_shape=2,2",
            "f16:1x3x9x9 kernel_shape=3,3", "f64:1x3x9x9 kernel_shape=3,3 strides=3,3",
            "f32:1x4x6x6 kernel_shape=2,2 nan=1"}));
constexpr PoolVersion kFull{.ceil_mode = true, .dilations = true, .count_include_pad = true};
WHIMBREL_REGISTER(
    Schema(19, 22, kOldTypes, kFull,
           {"f32:1x1x4x4={1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16} kernel_shape=3,3 strides=2,2 "
            "pads=1,1,1,1 ceil_mode=1 "
            "count_include_pad=1",
            "f32:1x2x9x9 kernel_shape=2,2 dilations=2,2 pads=1,1,1,1",
            "f32:1x2x9x9 kernel_shape=3,2 dilations=2,3 strides=2,2 pads=1,1,1,1 "
            "count_include_pad=1 ceil_mode=1",
            "f32:1x2x9 kernel_shape=7 strides=3 pads=3,3 ceil_mode=1 count_include_pad=1"}));
WHIMBREL_REGISTER(Schema(22, INT_MAX, kFloatTypes, kFull,
                         {"bf16:1x3x8x8 kernel_shape=3,3 strides=2,2",
                          "f32:1x3x8x8 kernel_shape=2,2 strides=2,2"}));
WHIMBREL_REGISTER(Kernel{.op = "AveragePool", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
