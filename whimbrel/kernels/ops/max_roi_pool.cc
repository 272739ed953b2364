// MaxRoiPool: each region, rounded to whole elements, is cut into bins; y is the maximum of a bin,
// 0 when it holds no element.
//
// in   X     [batch, channels, height, width]  f32 | f64 | f16, from 22 bf16
//      rois  [regions, 5]: batch index, x1, y1, x2, y2 in units of X / spatial_scale, both ends
//            included
// attr pooled_shape   ints: bins along height and width
//      spatial_scale  float, default 1
// out  Y     [regions, channels, pooled_shape...]
// Source: ONNX operator MaxRoiPool (1, 22); Girshick 2015.

#include <cmath>

#include <fmt/format.h>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

std::span<const int64_t> ReadBins(std::string_view op, const Attributes& attributes) {
  const auto bins = attributes.Ints("pooled_shape");
  if (bins.size() != 2 || bins[0] < 1 || bins[1] < 1 || bins[0] > (int64_t{1} << 31) ||
      bins[1] > (int64_t{1} << 31)) {
    throw Error(Code::kInvalidData, fmt::format("{}: pooled_shape must be two sizes", op));
  }
  return bins;
}

void Infer(InferContext& c) {
  const auto bins = ReadBins(c.schema().name, c.attrs());
  Dim regions, channels;
  if (c.in(0).dims) {
    if (c.in(0).rank() != 4) c.Fail("X must have rank 4, is " + ToString(*c.in(0).dims));
    channels = (*c.in(0).dims)[1];
  }
  if (c.in(1).dims) {
    const Dims& rois = *c.in(1).dims;
    if (rois.size() != 2 || (rois[1].known() && !rois[1].Is(5)))
      c.Fail("rois must be [regions, 5], is " + ToString(rois));
    regions = rois[0];
  }
  c.SetOut(0, c.in(0).dtype, Dims{regions, channels, bins[0], bins[1]});
}

// Whole elements [begin, end) of bin `bin` of one axis.
struct Range {
  int64_t begin, end;
};
Range BinRange(double low, double high, double scale, int64_t bin, int64_t bins, int64_t length) {
  // far away is outside; the bound keeps the casts defined
  const auto whole = [scale](double v) {
    const double r = std::round(v * scale);
    return std::isnan(r) ? 0 : std::clamp(r, -1e15, 1e15);
  };
  const double start = whole(low), extent = std::max(whole(high) - start + 1, 1.0);
  const double size = extent / static_cast<double>(bins);
  const auto clamped = [&](double v) {
    return static_cast<int64_t>(std::clamp(v + start, 0.0, static_cast<double>(length)));
  };
  return {clamped(std::floor(static_cast<double>(bin) * size)),
          clamped(std::ceil(static_cast<double>(bin + 1) * size))};
}

template <typename T>
void RunTyped(const OpCall& call) {
  const Shape& shape = call.x(0).shape();
  const auto bins = ReadBins(call.schema->name, call.attrs());
  const double scale = call.attrs().Float("spatial_scale", 1);
  const T* x = call.x(0).template data<T>();
  const T* rois = call.x(1).template data<T>();
  T* y = call.y(0).template data<T>();
  const int64_t regions = call.y(0).shape()[0];
  for (int64_t region = 0; region < regions; ++region) {
    const double batch = Widen(rois[region * 5]);
    if (batch >= 0 && batch < static_cast<double>(shape[0])) continue;
    throw Error(Code::kInvalidData, fmt::format("{}: region {} is of batch entry {} of {}",
                                                call.schema->name, region, batch, shape[0]));
  }
  ParallelFor(call.y(0).elements(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t col = i % bins[1], row = i / bins[1] % bins[0];
      const int64_t channel = i / (bins[0] * bins[1]) % shape[1];
      const T* roi = rois + i / (bins[0] * bins[1] * shape[1]) * 5;
      const Range rows = BinRange(Widen(roi[2]), Widen(roi[4]), scale, row, bins[0], shape[2]);
      const Range cols = BinRange(Widen(roi[1]), Widen(roi[3]), scale, col, bins[1], shape[3]);
      const T* plane =
          x + (static_cast<int64_t>(Widen(roi[0])) * shape[1] + channel) * shape[2] * shape[3];
      double best = 0;
      bool empty = true;
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        for (int64_t k = cols.begin; k < cols.end; ++k) {
          const double v = Widen(plane[r * shape[3] + k]);
          if (empty || v > best || std::isnan(v)) best = v;
          empty = false;
        }
      }
      y[i] = Narrow<T>(best);
    }
  });
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() { RunTyped<T>(call); });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return {
      .name = "MaxRoiPool",
      .since = since,
      .until = until,
      .inputs = {{.name = "X", .types = types, .group = 1},
                 {.name = "rois", .types = types, .group = 1}},
      .outputs = {{.name = "Y", .types = types, .group = 1}},
      .attributes = {{.name = "pooled_shape",
                      .type = AttributeType::kInts,
                      .required = true,
                      .note = "bins along height and width"},
                     {.name = "spatial_scale", .type = AttributeType::kFloat, .note = "default 1"}},
      .infer = Infer,
      .samples = std::move(samples),
      .doc = "largest element of each bin of a region"};
}

WHIMBREL_REGISTER(Schema(1, 22, kFloatTypesTo12,
                         {"f32:1x3x12x10 f32:2x5={0,1,1,7,9,0,-3,0,4,30} pooled_shape=2,3",
                          "f32:2x3x12x10 f32:1x5={1,2,2,8,8} pooled_shape=7,7 spatial_scale=0.5",
                          "f32:1x1x1x1 f32:1x5={0,0,0,0,0} pooled_shape=1,1",
                          "f32:1x3x4x4 f32:0x5 pooled_shape=2,2",
                          "f32:1x3x4x4 f32:1x5={0,9,9,12,12} pooled_shape=2,2",
                          "f64:1x3x4x4 f64:1x5={0,0,0,3,3} pooled_shape=2,2",
                          "f16:1x3x4x4 f16:1x5={0,0,0,3,3} pooled_shape=2,2"}));
WHIMBREL_REGISTER(Schema(22, INT_MAX, kFloatTypes,
                         {"bf16:1x3x4x4 bf16:1x5={0,0,0,3,3} pooled_shape=2,2"}));
WHIMBREL_REGISTER(Kernel{.op = "MaxRoiPool", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
