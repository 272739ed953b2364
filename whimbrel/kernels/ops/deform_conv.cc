// DeformConv: y[n, m, p] = B[m] + sum over channels c of m's group and taps k of W[m, c, k] mask[k,
// p] x[n, c, p stride + k dilation - pad + offset[k, p]], x interpolated, 0 outside.
//
// in   X       [batch, channels, spatial...]  f32 | f64 | f16, from 22 bf16
//      W       [out channels, channels / group, kernel...]
//      offset  [batch, offset groups * taps * axes, out spatial...]
//      B       [out channels], optional
//      mask    [batch, offset groups * taps, out spatial...], optional, default 1
// attr dilations, group, kernel_shape, pads, strides as Conv has them; offset_group  default 1
// out  Y       [batch, out channels, out spatial...]
// Source: ONNX operator DeformConv (19, 22); Dai et al. 2017, Zhu et al. 2018.

#include <fmt/format.h>

#include "whimbrel/kernels/ops/check_dims.h"
#include "whimbrel/kernels/ops/conv_common.h"
#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/quantized_product.h"

namespace whimbrel {
namespace {

enum Input : size_t { kX, kW, kOffset, kBias, kMask };

int64_t ReadOffsetGroups(std::string_view op, const Attributes& attributes) {
  const int64_t groups = attributes.Int("offset_group", 1);
  if (groups < 1 || groups > (int64_t{1} << 31))
    throw Error(Code::kInvalidData, fmt::format("{}: offset_group is {}", op, groups));
  return groups;
}

void Infer(InferContext& c) {
  const int64_t groups = ReadOffsetGroups(c.schema().name, c.attrs());
  auto out = InferConvDims(c, {.x = kX, .w = kW, .bias = kBias});
  if (out && c.in(kX).dims) {
    const Dim& channels = (*c.in(kX).dims)[1];
    if (channels.known() && channels.value() % groups != 0)
      c.Fail(
          fmt::format("{} channels do not divide into {} offset groups", channels.value(), groups));
    Dim taps;
    if (c.in(kW).dims) taps = ProductOf(*c.in(kW).dims, 2, c.in(kW).dims->size());
    Dims want = *out;
    want[0] = (*c.in(kX).dims)[0];
    want[1] = taps * Dim(groups) * Dim(static_cast<int64_t>(out->size()) - 2);
    CheckDims(c, kOffset, want);
    want[1] = taps * Dim(groups);
    CheckDims(c, kMask, want);
  }
  c.SetOut(0, c.in(kX).dtype, std::move(out));
}

Cost DeformCost(const OpCall& call) {
  Cost cost = ConvCost(call);
  cost.flops *= 4;  // the interpolation
  return cost;
}

using Place = std::array<double, kMaxSpatial>;

// x between its neighbours; those outside count as 0.
template <typename T>
double Interpolate(const T* plane, const ConvGeometry& g, const Place& place) {
  double sum = 0;
  for (int64_t corner = 0; corner < (int64_t{1} << g.spatial); ++corner) {
    double weight = 1;
    int64_t offset = 0;
    bool inside = true;
    for (int axis = 0; axis < g.spatial && inside; ++axis) {
      const auto i = static_cast<size_t>(axis);
      const double floor = std::floor(place[i]);
      const bool upper = ((corner >> axis) & 1) != 0;
      const double at = floor + (upper ? 1 : 0);
      // NaN is outside too
      inside = at >= 0 && at < static_cast<double>(g.in[i]);
      if (!inside) break;
      weight *= upper ? place[i] - floor : 1 - (place[i] - floor);
      offset = offset * g.in[i] + static_cast<int64_t>(at);
    }
    if (inside) sum += weight * Widen(plane[offset]);
  }
  return sum;
}

template <typename T>
void RunTyped(const OpCall& call) {
  const ConvGeometry g = ConvGeometryOf(call);
  const int64_t groups = ReadOffsetGroups(call.schema->name, call.attrs());
  const int64_t taps = g.kernel_size(), places = g.out_size(), plane = g.in_size();
  const int64_t per_group = std::max<int64_t>(g.in_channels / groups, 1);
  const auto data = [&call](size_t i) {
    return call.has(i) ? call.x(i).template data<T>() : nullptr;
  };
  const T *x = data(kX), *w = data(kW), *offsets = data(kOffset), *bias = data(kBias),
          *mask = data(kMask);
  T* y = call.y(0).template data<T>();
  ParallelFor(call.y(0).elements(), 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t p = i % places, m = i / places % g.out_channels;
      const int64_t n = i / places / g.out_channels;
      const SpatialArray position = Unflatten(p, g.out, g.spatial);
      double sum = bias == nullptr ? 0 : Widen(bias[m]);
      for (int64_t c = 0; c < g.group_in(); ++c) {
        const int64_t channel = m / g.group_out() * g.group_in() + c;
        const int64_t group = n * groups + channel / per_group;
        for (int64_t tap = 0; tap < taps; ++tap) {
          const SpatialArray at = Unflatten(tap, g.kernel, g.spatial);
          Place place{};
          for (int axis = 0; axis < g.spatial; ++axis) {
            const auto a = static_cast<size_t>(axis);
            const int64_t o = ((group * taps + tap) * g.spatial + axis) * places + p;
            place[a] = static_cast<double>(g.Start(axis, position[a]) + at[a] * g.dilation[a]) +
                       Widen(offsets[o]);
          }
          double value = Interpolate(x + (n * g.in_channels + channel) * plane, g, place);
          if (mask != nullptr) value *= Widen(mask[(group * taps + tap) * places + p]);
          sum += value * Widen(w[(m * g.group_in() + c) * taps + tap]);
        }
      }
      y[i] = Narrow<T>(sum);
    }
  });
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() { RunTyped<T>(call); });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema s{.name = "DeformConv",
             .since = since,
             .until = until,
             .inputs = {{.name = "X", .types = types, .group = 1},
                        {.name = "W", .types = types, .group = 1},
                        {.name = "offset", .types = types, .group = 1},
                        {.name = "B", .types = types, .optional = true, .group = 1},
                        {.name = "mask", .types = types, .optional = true, .group = 1}},
             .outputs = {{.name = "Y", .types = types, .group = 1}},
             .infer = Infer,
             .cost = DeformCost,
             .samples = std::move(samples),
             .matrix_op = true,
             .doc = "convolution whose taps are moved by offsets"};
  for (const AttributeSpec& a : ConvAttributes()) {
    if (a.name != "auto_pad") s.attributes.push_back(a);
  }
  s.attributes.push_back(
      {.name = "offset_group", .type = AttributeType::kInt, .note = "default 1"});
  return s;
}

WHIMBREL_REGISTER(
    Schema(19, 22, kFloatTypesTo12,
           {"f32:1x4x9x8 f32:6x4x3x3! f32:1x18x9x8@-1..1 f32:6! f32:1x9x9x8@0..1 pads=1,1,1,1",
            "f32:1x1x1x1 f32:1x1x1x1! f32:1x2x1x1",
            "f32:2x4x7x7 f32:6x2x3x3! f32:2x36x3x3@-3..3 group=2 offset_group=2 strides=2,2",
            "f32:1x2x9x9 f32:2x2x2x2! f32:1x8x7x7 dilations=2,2", "f32:1x2x9 f32:3x2x3! f32:1x3x7",
            "f32:1x2x4x4x4 f32:2x2x2x2x2! f32:1x24x3x3x3", "f32:0x2x4x4 f32:2x2x2x2! f32:0x8x3x3",
            "f32:1x2x4x4 f32:2x2x2x2! f32:1x8x3x3 nan=1", "f64:1x2x4x4 f64:2x2x2x2! f64:1x8x3x3",
            "f16:1x2x4x4 f16:2x2x2x2! f16:1x8x3x3"}));
WHIMBREL_REGISTER(Schema(22, INT_MAX, kFloatTypes,
                         {"f32:1x2x4x4 f32:2x2x2x2! f32:1x8x3x3",
                          "bf16:1x2x4x4 bf16:2x2x2x2! bf16:1x8x3x3"}));
WHIMBREL_REGISTER(Kernel{.op = "DeformConv", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
