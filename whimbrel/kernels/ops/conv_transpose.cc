// ConvTranspose: y[n, m, q] = b[m] + sum over p, k with q = p stride + k dilation - pad of x[n, c,
// p] w[c, m, k].
//
// in   X  [batch, channels, spatial...]  f32 | f64 | f16, from opset 22 also bf16
//      W  [channels, out channels / group, kernel...]
//      B  [out channels], optional
// attr auto_pad, dilations, group, kernel_shape, pads, strides, output_padding, output_shape
// out  Y  [batch, out channels, (spatial - 1) stride + output_padding + extent - pads]
// Source: ONNX operator ConvTranspose (1, 11, 22). output_shape and SAME_* set the pads; an odd one
// goes to the end under SAME_UPPER, else to the beginning.

#include <algorithm>
#include <array>

#include "whimbrel/kernels/ops/conv_common.h"
#include "whimbrel/kernels/ops/widen.h"

namespace whimbrel {
namespace {

constexpr int64_t kTile = 256;  // output columns summed at once, 2 KiB of doubles
constexpr double kGrainMacs = 32768;

int64_t FloorDivide(int64_t a, int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

// Where the input row that outer tap `tap` sends to output row `outer` begins; -1 when there is
// none.
int64_t InputRow(const ConvGeometry& g, const SpatialArray& outer, const SpatialArray& tap) {
  int64_t row = 0;
  for (int axis = 0; axis + 1 < g.spatial; ++axis) {
    const auto i = static_cast<size_t>(axis);
    const int64_t scaled = outer[i] + g.pad_begin[i] - tap[i] * g.dilation[i];
    if (scaled < 0 || scaled % g.stride[i] != 0 || scaled / g.stride[i] >= g.in[i]) return -1;
    row = row * g.in[i] + scaled / g.stride[i];
  }
  return row * g.in[static_cast<size_t>(g.spatial - 1)];
}

// x: the group's first channel; w: weights of that channel and one output channel; channels of w
// lie `w_step` apart.
template <typename T>
void SumRow(const ConvGeometry& g, const T* x, const T* w, int64_t w_step,
            const SpatialArray& outer, int64_t first, int64_t columns, double* sums) {
  const int last = g.spatial - 1;
  const auto li = static_cast<size_t>(last);
  const int64_t stride = g.stride[li], in_size = g.in_size();
  const int64_t outer_taps = g.ProductOfSpatial(g.kernel, last);
  for (int64_t outer_tap = 0; outer_tap < outer_taps; ++outer_tap) {
    const int64_t row = InputRow(g, outer, Unflatten(outer_tap, g.kernel, last));
    if (row < 0) continue;
    for (int64_t tap = 0; tap < g.kernel[li]; ++tap) {
      // input p lands on column p stride + shift of the tile
      const int64_t shift = tap * g.dilation[li] - g.pad_begin[li] - first;
      const int64_t begin = std::max<int64_t>(0, FloorDivide(-shift + stride - 1, stride));
      const int64_t end = std::min(g.in[li], FloorDivide(columns - shift + stride - 1, stride));
      for (int64_t c = 0; c < g.group_in(); ++c) {
        const double weight = static_cast<double>(w[c * w_step + outer_tap * g.kernel[li] + tap]);
        const T* from = x + c * in_size + row;
        for (int64_t p = begin; p < end; ++p)
          sums[p * stride + shift] += weight * static_cast<double>(from[p]);
      }
    }
  }
}

template <typename T>
void RunTyped(const OpCall& call, std::span<std::byte> workspace) {
  const ConvGeometry g = ConvTransposeGeometryOf(call);
  const auto* x = WidenInput<T>(call.x(0), workspace);
  const auto* w = WidenInput<T>(call.x(1), workspace);
  const T* bias = call.has(2) ? call.x(2).template data<T>() : nullptr;
  T* y = call.y(0).template data<T>();
  const int64_t width = g.out[static_cast<size_t>(g.spatial - 1)];
  const int64_t rows_per_channel = g.ProductOfSpatial(g.out, g.spatial - 1);
  const int64_t rows = call.y(0).elements() == 0 ? 0 : g.batch * g.out_channels * rows_per_channel;
  const double row_macs =
      static_cast<double>(width * g.group_in()) * static_cast<double>(g.kernel_size());
  const auto grain = static_cast<int64_t>(kGrainMacs / std::max(row_macs, 1.0)) + 1;
  ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
    std::array<double, kTile> sums;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t channel = row / rows_per_channel % g.out_channels;
      const int64_t image = row / rows_per_channel / g.out_channels;
      const int64_t group = channel / g.group_out();
      const SpatialArray outer = Unflatten(row % rows_per_channel, g.out, g.spatial - 1);
      const int64_t first_in = group * g.group_in();
      const auto* from = x + (image * g.in_channels + first_in) * g.in_size();
      const auto* weights =
          w + (first_in * g.group_out() + channel % g.group_out()) * g.kernel_size();
      for (int64_t first = 0; first < width; first += kTile) {
        const int64_t columns = std::min(kTile, width - first);
        std::fill_n(sums.begin(), columns,
                    bias == nullptr ? 0 : static_cast<double>(bias[channel]));
        SumRow(g, from, weights, g.group_out() * g.kernel_size(), outer, first, columns,
               sums.data());
        for (int64_t i = 0; i < columns; ++i)
          y[row * width + first + i] = static_cast<T>(sums[static_cast<size_t>(i)]);
      }
    }
  });
}

size_t Workspace(const OpCall& call) {
  return WidenedBytes(call.x(0)) + WidenedBytes(call.x(1));
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(),
                                 [&]<typename T>() { RunTyped<T>(call, workspace); });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return {
      .name = "ConvTranspose",
      .since = since,
      .until = until,
      .inputs = {{.name = "X", .types = types, .group = 1},
                 {.name = "W", .types = types, .group = 1},
                 {.name = "B", .types = types, .optional = true, .group = 1}},
      .outputs = {{.name = "Y", .types = types, .group = 1}},
      .attributes = ConvTransposeAttributes(),
      .infer = InferConvTranspose,
      .cost = ConvTransposeCost,
      .samples = std::move(samples),
      .matrix_op = true,
      .doc = "transposed convolution (gradient of Conv)",
  };
}

constexpr TypeMask kOldTypes = kFloatTypes & ~TypeBit(DType::kBFloat16);

WHIMBREL_REGISTER(Schema(1, 11, kOldTypes,
                         {"f32:1x4x5x5 f32:4x3x3x3! f32:3! strides=2,2 opset=7",
                          "f32:1x2x3x3 f32:2x1x2x2! strides=2,2 opset=10"}));
WHIMBREL_REGISTER(Schema(
    11, 22, kOldTypes,
    {"f32:1x16x10x10 f32:16x8x2x2! f32:8! strides=2,2",
     "f32:1x16x10x9 f32:16x8x4x4! f32:8! strides=2,2 pads=1,1,1,1", "f32:1x1x1x1 f32:1x1x1x1!",
     "f32:2x6x7x5 f32:6x2x3x3! f32:6! group=3 strides=2,1 pads=1,0,1,2",
     "f32:1x2x4x4 f32:2x3x3x3! strides=3,2 output_padding=1,1 pads=1,1,1,1",
     "f32:1x2x3x3 f32:2x2x3x3! strides=3,2 output_shape=10,8",
     "f32:1x2x3x3 f32:2x2x3x3! strides=3,2 output_shape=10,8 auto_pad=SAME_UPPER",
     "f32:1x2x3x3 f32:2x2x3x3! strides=3,2 output_shape=8,5 auto_pad=SAME_LOWER",
     "f32:1x2x3x3 f32:2x2x3x3! strides=2,2 auto_pad=SAME_UPPER",
     "f32:1x2x3x3 f32:2x2x4x3! strides=3,3 auto_pad=SAME_LOWER",
     "f32:1x2x3x4 f32:2x2x3x3! dilations=2,2 pads=1,1,1,1", "f32:2x3x7 f32:3x4x4! f32:4! strides=2",
     "f32:1x2x3x4x3 f32:2x2x2x3x2! f32:2! strides=2,1,2 pads=0,1,0,1,1,0",
     "f32:0x4x5x5 f32:4x3x3x3!", "f32:1x64x20x20 f32:64x32x2x2! f32:32! strides=2,2",
     "f32:1x1x2x300 f32:1x1x2x3! strides=1,2", "f64:1x4x5x5 f64:4x3x3x3! auto_pad=VALID",
     "f16:1x4x6x6 f16:4x4x2x2! f16:4! strides=2,2",
     "f32:1x8x5x5 f32:8x1x3x3! f32:8! group=8 strides=2,2 pads=1,1,1,1 output_padding=1,1"}));
WHIMBREL_REGISTER(Schema(22, INT_MAX, kFloatTypes,
                         {"f32:1x4x7x7 f32:4x4x2x2! f32:4! strides=2,2",
                          "bf16:1x4x7x7 bf16:4x4x2x2! bf16:4! strides=2,2"}));
WHIMBREL_REGISTER(Kernel{
    .op = "ConvTranspose", .name = "reference", .workspace = Workspace, .run = Run});

}  // namespace
}  // namespace whimbrel
