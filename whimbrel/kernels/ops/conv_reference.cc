// Convolution reference: one output row at a time, a tile of double sums on the stack, taps outside
// the data left out.

#include <algorithm>
#include <array>

#include "whimbrel/kernels/ops/activation.h"
#include "whimbrel/kernels/ops/conv_common.h"
#include "whimbrel/kernels/ops/widen.h"

namespace whimbrel {
namespace {

// Output columns summed at once: 2 KiB of doubles stay in L1 beside the input rows.
constexpr int64_t kTile = 256;
// Multiply-adds worth waking a thread for.
constexpr double kGrainMacs = 32768;

// Where the input row under outer tap `tap` begins in one channel; -1 when it lies in padding.
int64_t InputRow(const ConvGeometry& g, const SpatialArray& outer, const SpatialArray& tap) {
  int64_t row = 0;
  for (int axis = 0; axis + 1 < g.spatial; ++axis) {
    const auto i = static_cast<size_t>(axis);
    const int64_t at = g.Start(axis, outer[i]) + tap[i] * g.dilation[i];
    if (at < 0 || at >= g.in[i]) return -1;
    row = row * g.in[i] + at;
  }
  return row * g.in[static_cast<size_t>(g.spatial - 1)];
}

// sums[0, columns) += the products of output row `outer`, columns from `first` on. x: the group's
// first channel, w: the output channel's weights.
template <typename T>
void SumRow(const ConvGeometry& g, const T* x, const T* w, const SpatialArray& outer, int64_t first,
            int64_t columns, double* sums) {
  const int last = g.spatial - 1;
  const auto li = static_cast<size_t>(last);
  const int64_t in_size = g.in_size(), kernel_size = g.kernel_size();
  const int64_t outer_taps = g.ProductOfSpatial(g.kernel, last);
  const int64_t stride = g.stride[li];
  for (int64_t outer_tap = 0; outer_tap < outer_taps; ++outer_tap) {
    const int64_t row = InputRow(g, outer, Unflatten(outer_tap, g.kernel, last));
    if (row < 0) continue;
    for (int64_t tap = 0; tap < g.kernel[li]; ++tap) {
      const auto valid = g.ValidPositions(last, tap);
      const int64_t begin = std::max(valid.begin, first),
                    end = std::min(valid.end, first + columns);
      if (begin >= end) continue;
      const int64_t source = row + g.Start(last, begin) + tap * g.dilation[li];
      double* const to = sums + (begin - first);
      const int64_t count = end - begin;
      for (int64_t c = 0; c < g.group_in(); ++c) {
        const double weight =
            static_cast<double>(w[c * kernel_size + outer_tap * g.kernel[li] + tap]);
        const T* from = x + c * in_size + source;
        if (stride == 1) {
          for (int64_t i = 0; i < count; ++i) to[i] += weight * static_cast<double>(from[i]);
        } else {
          for (int64_t i = 0; i < count; ++i)
            to[i] += weight * static_cast<double>(from[i * stride]);
        }
      }
    }
  }
}

template <typename T>
void RunTyped(const OpCall& call, std::span<std::byte> workspace) {
  const ConvGeometry g = ConvGeometryOf(call);
  const auto activation = ReadActivation(call.schema->name, call.attrs());
  const auto* x = WidenInput<T>(call.x(0), workspace);
  const auto* w = WidenInput<T>(call.x(1), workspace);
  const T* bias = call.has(2) ? call.x(2).template data<T>() : nullptr;
  const T* residual = call.has(3) ? call.x(3).template data<T>() : nullptr;
  const T* slope = call.has(4) ? call.x(4).template data<T>() : nullptr;
  const bool one_slope = slope != nullptr && call.x(4).elements() == 1;
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
      const auto* from = x + (image * g.in_channels + group * g.group_in()) * g.in_size();
      const auto* weights = w + channel * g.group_in() * g.kernel_size();
      const double channel_slope =
          slope == nullptr ? 0 : static_cast<double>(slope[one_slope ? 0 : channel]);
      for (int64_t first = 0; first < width; first += kTile) {
        const int64_t columns = std::min(kTile, width - first);
        std::fill_n(sums.begin(), columns,
                    bias == nullptr ? 0 : static_cast<double>(bias[channel]));
        SumRow(g, from, weights, outer, first, columns, sums.data());
        for (int64_t i = 0; i < columns; ++i) {
          const int64_t at = row * width + first + i;
          double sum = sums[static_cast<size_t>(i)];
          if (residual != nullptr) sum += static_cast<double>(residual[at]);
          y[at] = static_cast<T>(Activate(activation, sum, channel_slope));
        }
      }
    }
  });
}

}  // namespace

size_t ConvReferenceWorkspace(const OpCall& call) {
  return WidenedBytes(call.x(0)) + WidenedBytes(call.x(1));
}

void RunConvReference(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(),
                                 [&]<typename T>() { RunTyped<T>(call, workspace); });
}

}  // namespace whimbrel
