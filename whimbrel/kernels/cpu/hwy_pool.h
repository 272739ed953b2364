// Pools of f32 images: windows of [height, width] data, channels-last or plane by plane.

#pragma once

#include <cstdint>

namespace whimbrel {

// One window on the data: taps [y, y + rows) and [x, x + columns) of steps `dilation`.
struct PoolWindow {
  int64_t rows = 0;
  int64_t columns = 0;
};

// out[c] = max / scale * sum over the taps of in[(r * row_stride + k * column_stride) + c]; at
// least one tap, NaN wins. Strides in elements.
using PoolFunction = void (*)(const float* in, PoolWindow window, int64_t row_stride,
                              int64_t column_stride, int64_t channels, float scale, float* out);
PoolFunction FindMaxPool();
PoolFunction FindAveragePool();

}  // namespace whimbrel
