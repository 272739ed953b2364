// RoiAlign: each region is cut into bins; a bin is the mean or maximum of points on a grid inside
// it, each interpolated between its four neighbours.
//
// in   X              [batch, channels, height, width]  f32 | f64 | f16, from 22 bf16
//      rois           [regions, 4]: x1, y1, x2, y2 in units of X / spatial_scale
//      batch_indices  [regions] i64
// attr output_height, output_width  bins, default 1; spatial_scale  float, default 1
//      sampling_ratio  points in a bin along each axis; 0 (default): ceil(region / bins)
//      mode            avg (default) or max
//      coordinate_transformation_mode  from 16: half_pixel (default, moves regions by -0.5) or
//                      output_half_pixel; before 16 the latter, whose regions are at least 1 wide
// out  Y  [regions, channels, output_height, output_width]
// Source: ONNX operator RoiAlign (10, 16, 22); He et al. 2017. With max the four weighted
// neighbours compete, not the interpolated points: so have ONNX Runtime and ONNX's own data.

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

constexpr int64_t kMostBins = int64_t{1} << 31;
constexpr double kMostPoints = 1 << 20;  // of a bin along one axis

struct RoiAttributes {
  int64_t height = 1, width = 1, sampling = 0;
  double scale = 1;
  bool maximum = false, half_pixel = true;
};

RoiAttributes ReadRoi(std::string_view op, const Attributes& attributes, int since) {
  RoiAttributes r;
  r.height = attributes.Int("output_height", 1);
  r.width = attributes.Int("output_width", 1);
  r.sampling = attributes.Int("sampling_ratio", 0);
  r.scale = attributes.Float("spatial_scale", 1);
  if (r.height < 1 || r.width < 1 || r.height > kMostBins || r.width > kMostBins)
    throw Error(Code::kInvalidData, fmt::format("{}: {} x {} bins", op, r.height, r.width));
  if (r.sampling < 0 || static_cast<double>(r.sampling) > kMostPoints)
    throw Error(Code::kInvalidData, fmt::format("{}: sampling_ratio is {}", op, r.sampling));
  const std::string_view mode = attributes.String("mode", "avg");
  if (mode != "avg" && mode != "max")
    throw Error(Code::kInvalidData, fmt::format("{}: mode \"{}\" is not known", op, mode));
  r.maximum = mode == "max";
  const std::string_view transform = attributes.String(
      "coordinate_transformation_mode", since < 16 ? "output_half_pixel" : "half_pixel");
  if (transform != "half_pixel" && transform != "output_half_pixel") {
    throw Error(
        Code::kInvalidData,
        fmt::format("{}: coordinate_transformation_mode \"{}\" is not known", op, transform));
  }
  r.half_pixel = transform == "half_pixel";
  return r;
}

void Infer(InferContext& c) {
  const RoiAttributes r = ReadRoi(c.schema().name, c.attrs(), c.schema().since);
  Dim regions, channels;
  if (c.in(0).dims) {
    if (c.in(0).rank() != 4) c.Fail("X must have rank 4, is " + ToString(*c.in(0).dims));
    channels = (*c.in(0).dims)[1];
  }
  if (c.in(1).dims) {
    const Dims& rois = *c.in(1).dims;
    if (rois.size() != 2 || (rois[1].known() && !rois[1].Is(4)))
      c.Fail("rois must be [regions, 4], is " + ToString(rois));
    regions = rois[0];
  }
  if (c.in(2).dims) {
    const Dims& indices = *c.in(2).dims;
    if (indices.size() != 1 ||
        (indices[0].known() && regions.known() && !indices[0].Is(regions.value())))
      c.Fail("batch_indices must be [regions], is " + ToString(indices));
    if (!regions.known()) regions = indices[0];
  }
  c.SetOut(0, c.in(0).dtype, Dims{regions, channels, r.height, r.width});
}

// One axis of a region.
struct Bins {
  double start = 0, size = 0;
  int64_t points = 0;

  double Point(int64_t bin, int64_t point) const {
    return start + static_cast<double>(bin) * size +
           (static_cast<double>(point) + 0.5) * size / static_cast<double>(points);
  }
};

Bins MakeBins(const RoiAttributes& r, double low, double high, int64_t count) {
  const double offset = r.half_pixel ? 0.5 : 0;
  Bins b;
  b.start = low * r.scale - offset;
  double extent = high * r.scale - offset - b.start;
  if (!r.half_pixel) extent = std::max(extent, 1.0);
  b.size = extent / static_cast<double>(count);
  if (r.sampling > 0) {
    b.points = r.sampling;
    return b;
  }
  const double points = std::ceil(b.size);
  if (points > kMostPoints)
    throw Error(Code::kInvalidData, fmt::format("RoiAlign: a region is {} elements wide", extent));
  b.points = points > 0 ? static_cast<int64_t>(points) : 0;
  return b;
}

// The two neighbours of a point on one axis; weights 0 when it is outside.
struct Neighbours {
  std::array<int64_t, 2> index{};
  std::array<double, 2> weight{};
};

Neighbours NeighboursOf(double x, int64_t length) {
  Neighbours n;
  if (!(x >= -1 && x <= static_cast<double>(length))) return n;
  x = std::max(x, 0.0);
  const auto low = static_cast<int64_t>(x);
  if (low >= length - 1) {
    n.index = {length - 1, length - 1};
    n.weight = {1, 0};
    return n;
  }
  const double part = x - static_cast<double>(low);
  n.index = {low, low + 1};
  n.weight = {1 - part, part};
  return n;
}

template <typename T>
double BinValue(const T* plane, int64_t width, int64_t height, const Bins& rows, const Bins& cols,
                int64_t row, int64_t col, bool maximum) {
  double sum = 0;
  bool first = true;
  for (int64_t i = 0; i < rows.points; ++i) {
    const Neighbours v = NeighboursOf(rows.Point(row, i), height);
    for (int64_t j = 0; j < cols.points; ++j) {
      const Neighbours h = NeighboursOf(cols.Point(col, j), width);
      for (size_t k = 0; k < 4; ++k) {
        const double weighted = v.weight[k / 2] * h.weight[k % 2] *
                                static_cast<double>(plane[v.index[k / 2] * width + h.index[k % 2]]);
        if (!maximum) {
          sum += weighted;
        } else if (first || weighted > sum) {
          sum = weighted;
        }
        first = false;
      }
    }
  }
  const auto count = static_cast<double>(std::max<int64_t>(rows.points * cols.points, 1));
  return maximum ? sum : sum / count;
}

void CheckIndices(const OpCall& call) {
  const int64_t batch = call.x(0).shape()[0];
  for (int64_t index : call.x(2).values<int64_t>()) {
    if (index >= 0 && index < batch) continue;
    throw Error(Code::kInvalidData,
                fmt::format("RoiAlign: batch_indices holds {}, the batch is {}", index, batch));
  }
}

template <typename T>
void RunTyped(const OpCall& call, const RoiAttributes& r) {
  const Shape& shape = call.x(0).shape();
  const int64_t channels = shape[1], height = shape[2], width = shape[3];
  const int64_t regions = call.y(0).shape()[0];
  const T* x = call.x(0).template data<T>();
  const T* rois = call.x(1).template data<T>();
  const int64_t* batch = call.x(2).template data<int64_t>();
  T* y = call.y(0).template data<T>();
  const auto bins = [&](int64_t region, int axis) {
    const T* roi = rois + region * 4;
    return MakeBins(r, Widen(roi[1 - axis]), Widen(roi[3 - axis]), axis == 0 ? r.height : r.width);
  };
  for (int64_t region = 0; region < regions; ++region) bins(region, 0), bins(region, 1);
  if (height == 0 || width == 0) {
    std::fill_n(y, call.y(0).elements(), T{});
    return;
  }
  ParallelFor(regions * channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t region = task / channels, channel = task % channels;
      const Bins rows = bins(region, 0), cols = bins(region, 1);
      const T* plane = x + (batch[region] * channels + channel) * height * width;
      for (int64_t bin = 0; bin < r.height * r.width; ++bin) {
        y[task * r.height * r.width + bin] = static_cast<T>(
            BinValue(plane, width, height, rows, cols, bin / r.width, bin % r.width, r.maximum));
      }
    }
  });
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const RoiAttributes r = ReadRoi(call.schema->name, call.attrs(), call.schema->since);
  CheckIndices(call);
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(),
                                 [&]<typename T>() { RunTyped<T>(call, r); });
}

Cost RoiCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  const int64_t sampling = std::max<int64_t>(call.attrs().Int("sampling_ratio", 0), 2);
  cost.flops *= 8 * static_cast<double>(sampling) * static_cast<double>(sampling);
  return cost;
}

OpSchema Schema(int since, int until, std::vector<std::string_view> samples) {
  const TypeMask types = since < 22 ? kFloatTypesTo12 : kFloatTypes;
  OpSchema s{.name = "RoiAlign",
             .since = since,
             .until = until,
             .inputs = {{.name = "X", .types = types, .group = 1},
                        {.name = "rois", .types = types, .group = 1},
                        {.name = "batch_indices", .types = TypeBit(DType::kInt64)}},
             .outputs = {{.name = "Y", .types = types, .group = 1}},
             .attributes =
                 {{.name = "mode", .type = AttributeType::kString, .note = "avg (default) or max"},
                  {.name = "output_height", .type = AttributeType::kInt, .note = "default 1"},
                  {.name = "output_width", .type = AttributeType::kInt, .note = "default 1"},
                  {.name = "sampling_ratio",
                   .type = AttributeType::kInt,
                   .note = "points in a bin along an axis; 0 (default): by its size"},
                  {.name = "spatial_scale", .type = AttributeType::kFloat, .note = "default 1"}},
             .infer = Infer,
             .cost = RoiCost,
             .samples = std::move(samples),
             .doc = "regions of a picture at one size"};
  if (since >= 16) {
    s.attributes.push_back({.name = "coordinate_transformation_mode",
                            .type = AttributeType::kString,
                            .note = "half_pixel (default) or output_half_pixel"});
  }
  return s;
}

WHIMBREL_REGISTER(Schema(10, 16,
                         {"f32:1x2x8x9 f32:3x4@0..9 i64:3@0..0 output_height=2 output_width=3",
                          "f32:1x2x8x9 f32:1x4={1,2,1,2} i64:1={0} sampling_ratio=2"}));
WHIMBREL_REGISTER(Schema(
    16, 22,
    {"f32:2x16x20x20 f32:5x4@0..40 i64:5@0..1 output_height=7 output_width=7 spatial_scale=0.5",
     "f32:2x3x8x9 f32:3x4@-5..15 i64:3@0..1 output_height=2 output_width=3 mode=max",
     "f32:2x3x8x9 f32:3x4@0..9 i64:3@0..1 coordinate_transformation_mode=output_half_pixel "
     "sampling_ratio=2",
     "f32:1x1x1x1 f32:1x4 i64:1={0}", "f32:1x2x8x9 f32:0x4 i64:0",
     "f32:1x2x8x9 f32:3x4 i64:3@0..0 sampling_ratio=2 nan=1", "f64:2x3x8x9 f64:3x4@0..9 i64:3@0..1",
     "f16:2x3x8x9 f16:3x4@0..9 i64:3@0..1"}));
WHIMBREL_REGISTER(Schema(22, INT_MAX,
                         {"bf16:2x3x8x9 bf16:3x4@0..9 i64:3@0..1",
                          "f32:2x3x8x9 f32:3x4@0..9 i64:3@0..1 output_width=2"}));
WHIMBREL_REGISTER(Kernel{.op = "RoiAlign", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
