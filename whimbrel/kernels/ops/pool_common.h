// Pool: geometry, inference and cost that MaxPool and AveragePool share.

#pragma once

#include "whimbrel/kernels/ops/window.h"

namespace whimbrel {

struct PoolGeometry : WindowGeometry {
  int64_t planes = 0;  // batch x channels
};

// Of a call with data X [batch, channels, in...]; data is not read.
PoolGeometry PoolGeometryOf(const OpCall& call);
// Outputs 0 (type of X) and 1 (int64 indices, when asked for) as [batch, channels, windows...].
void InferPool(InferContext& c);
// One FLOP per tap.
Cost PoolCost(const OpCall& call);

// What opset versions add one after another.
struct PoolVersion {
  bool storage_order = false, ceil_mode = false, dilations = false, count_include_pad = false;
};
std::vector<AttributeSpec> PoolAttributes(const PoolVersion& version);

// Calls fn(offset in the plane) for the taps of window `position` that lie on data, in row-major
// order.
template <typename F>
void ForEachTap(const WindowGeometry& g, const SpatialArray& position, F&& fn) {
  const int64_t taps = g.kernel_size();
  for (int64_t tap = 0; tap < taps; ++tap) {
    const SpatialArray at = Unflatten(tap, g.kernel, g.spatial);
    int64_t offset = 0;
    bool on_data = true;
    for (int axis = 0; axis < g.spatial && on_data; ++axis) {
      const auto i = static_cast<size_t>(axis);
      const int64_t x = g.Start(axis, position[i]) + at[i] * g.dilation[i];
      on_data = x >= 0 && x < g.in[i];
      offset = offset * g.in[i] + x;
    }
    if (on_data) fn(offset);
  }
}

}  // namespace whimbrel
