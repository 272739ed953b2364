// MaxPool: y[n, c, p] = max over the taps of window p that lie on data; NaN wins; ties go to the
// first tap.
//
// in   X        [batch, channels, spatial...]  f32 | f64 | f16, from 12 i8 | u8, from 22 bf16
// attr auto_pad, kernel_shape, pads, strides; from 8 storage_order; from 10 ceil_mode, dilations
// out  Y        [batch, channels, windows...]
//      Indices  int64, from 8, optional: where the maximum lies in the flattened X; -1 when no tap
//      lies on data
// Source: ONNX operator MaxPool (1, 8, 10, 11, 12, 22). ceil_mode: a window that would start in the
// padding behind the data is left out.

#include <cmath>
#include <limits>

#include "whimbrel/kernels/ops/pool_common.h"
#include "whimbrel/kernels/reference.h"

namespace whimbrel {
namespace {

constexpr TypeMask kByteTypes = TypeBit(DType::kInt8) | TypeBit(DType::kUint8);
constexpr TypeMask kOldTypes = kFloatTypes & ~TypeBit(DType::kBFloat16);

// The same place counted with the first axis fastest.
int64_t ColumnMajor(int64_t offset, const PoolGeometry& g) {
  const SpatialArray at = Unflatten(offset, g.in, g.spatial);
  int64_t flat = 0;
  for (int axis = g.spatial - 1; axis >= 0; --axis) {
    flat = flat * g.in[static_cast<size_t>(axis)] + at[static_cast<size_t>(axis)];
  }
  return flat;
}

template <typename T>
void RunTyped(const OpCall& call) {
  using W = WideOf<T>;
  const PoolGeometry g = PoolGeometryOf(call);
  const bool column_major = call.attrs().Int("storage_order", 0) == 1;
  const T* x = call.x(0).template data<T>();
  T* y = call.y(0).template data<T>();
  int64_t* indices = call.has_out(1) ? call.y(1).template data<int64_t>() : nullptr;
  const int64_t windows = g.out_size(), plane_size = g.in_size();
  ParallelFor(call.y(0).elements(), 4096 / g.kernel_size() + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t plane = i / windows;
      const T* from = x + plane * plane_size;
      W best = std::numeric_limits<W>::has_infinity ? -std::numeric_limits<W>::infinity()
                                                    : std::numeric_limits<W>::lowest();
      int64_t where = -1;
      ForEachTap(g, Unflatten(i % windows, g.out, g.spatial), [&](int64_t offset) {
        const W value = Widen(from[offset]);
        if constexpr (std::is_floating_point_v<W>) {
          if (std::isnan(best)) return;
          if (!(where < 0 || value > best || std::isnan(value))) return;
        } else {
          if (!(where < 0 || value > best)) return;
        }
        best = value;
        where = offset;
      });
      y[i] = Narrow<T>(best);
      if (indices == nullptr) continue;
      indices[i] =
          where < 0 ? -1 : plane * plane_size + (column_major ? ColumnMajor(where, g) : where);
    }
  });
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  DispatchReference<kFloatTypes | kByteTypes>(call, call.x(0).dtype(),
                                              [&]<typename T>() { RunTyped<T>(call); });
}

void Infer(InferContext& c) {
  const int64_t order = c.attrs().Int("storage_order", 0);
  if (order != 0 && order != 1) c.Fail("storage_order is 0 or 1, is " + std::to_string(order));
  InferPool(c);
}

OpSchema Schema(int since, int until, TypeMask types, const PoolVersion& version,
                std::vector<std::string_view> samples) {
  OpSchema s{
      .name = "MaxPool",
      .since = since,
      .until = until,
      .inputs = {{.name = "X", .types = types, .group = 1}},
      .outputs = {{.name = "Y", .types = types, .group = 1}},
      .attributes = PoolAttributes(version),
      .infer = Infer,
      .cost = PoolCost,
      .samples = std::move(samples),
      .doc = "largest element of each window",
  };
  if (since >= 8)
    s.outputs.push_back({.name = "Indices", .types = TypeBit(DType::kInt64), .optional = true});
  return s;
}

WHIMBREL_REGISTER(Schema(1, 8, kOldTypes, {},
                         {"f32:1x3x8x8 kernel_shape=2,2 strides=2,2 opset=7",
                          "f32:1x2x7 kernel_shape=3 pads=1,1"}));
WHIMBREL_REGISTER(Schema(8, 10, kOldTypes, {.storage_order = true},
                         {"f32:1x3x6x6 kernel_shape=3,3 strides=2,2 outputs=2",
                          "f32:1x2x4x5 kernel_shape=2,2 storage_order=1 outputs=2"}));
constexpr PoolVersion kFull{.storage_order = true, .ceil_mode = true, .dilations = true};
WHIMBREL_REGISTER(Schema(10, 11, kOldTypes, kFull,
                         {"f32:1x3x7x7 kernel_shape=3,3 strides=2,2 ceil_mode=1",
                          "f32:1x3x1x4 kernel_shape=3,3 strides=3,3 ceil_mode=1 outputs=2",
                          "f32:1x3x9x9 kernel_shape=3,3 dilations=2,2"}));
WHIMBREL_REGISTER(Schema(11, 12, kOldTypes, kFull,
                         {"f32:1x8x13x12 kernel_shape=3,3 strides=2,2 pads=1,1,1,1 opset=11",
                          "f16:1x3x6x6 kernel_shape=2,2"}));
WHIMBREL_REGISTER(
    Schema(12, 22, kOldTypes | kByteTypes, kFull,
           {"f32:1x64x56x56 kernel_shape=3,3 strides=2,2 pads=1,1,1,1",
            "f32:1x1x1x1 kernel_shape=1,1",
            "f32:2x5x11x9 kernel_shape=5,5 pads=2,2,2,2",
            "f32:1x2x4x4 kernel_shape=3,3 strides=2,2 ceil_mode=1 outputs=2",
            "f32:1x1x5x5 kernel_shape=3,3 strides=3,3 pads=1,1,1,1 ceil_mode=1",
            "f32:1x4x7x7 kernel_shape=2,2 strides=2,2 auto_pad=SAME_UPPER outputs=2",
            "f32:1x4x7x7 kernel_shape=3,2 strides=2,2 auto_pad=SAME_LOWER outputs=2",
            "f32:1x4x7x7 kernel_shape=3,3 strides=2,2 auto_pad=VALID",
            "f32:1x2x10x10 kernel_shape=2,3 dilations=3,2 outputs=2",
            "f32:2x3x5x4 kernel_shape=2,2 storage_order=1 outputs=2",
            "f32:2x3x17 kernel_shape=3 strides=2 pads=1,0 outputs=2",
            "f32:1x2x5x6x7 kernel_shape=2,3,2 strides=2,1,2 pads=0,1,1,1,1,0 outputs=2",
            "f32:0x3x8x8 kernel_shape=2,2",
            "f32:1x1x2x3={5,5,5,1,5,5} kernel_shape=2,2 outputs=2",
            "i8:1x3x6x6@-100..100 kernel_shape=3,3 outputs=2",
            "u8:1x3x6x6@0..255 kernel_shape=2,2 strides=2,2",
            "f64:1x2x6x6 kernel_shape=2,2",
            "f16:1x2x9x9 kernel_shape=3,3",
            "f32:1x3x8x8 kernel_shape=3,3 strides=2,2 auto_pad=VALID ceil_mode=1",
            "f32:1x2x3x4x5 kernel_shape=2,2,2 storage_order=1 outputs=2",
            "f32:1x2x6x6@-9..-5 kernel_shape=3,3 pads=2,2,2,2"}));
WHIMBREL_REGISTER(Schema(22, INT_MAX, kFloatTypes | kByteTypes, kFull,
                         {"bf16:1x3x8x8 kernel_shape=3,3 strides=2,2 pads=1,1,1,1 outputs=2",
                          "f32:1x3x8x8 kernel_shape=2,2 strides=2,2"}));
WHIMBREL_REGISTER(Kernel{.op = "MaxPool", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
