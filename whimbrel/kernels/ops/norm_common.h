// norm: mean and spread of a row, and the checks that normalisations share.

#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "whimbrel/kernels/ops/check_dims.h"
#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {

struct RowMoments {
  double mean = 0;
  double inverse = 1;  // 1 / sqrt(variance + epsilon)
};

// Of at(0), ..., at(length - 1), in two passes and in double, so that large values of 16-bit types
// keep their variance. Not centred: the mean is 0 and the variance the mean square.
template <typename F>
RowMoments MomentsOf(int64_t length, double epsilon, bool centred, F at) {
  RowMoments m;
  const auto count = static_cast<double>(length);
  if (centred) {
    for (int64_t i = 0; i < length; ++i) m.mean += at(i);
    m.mean /= count;
  }
  double squares = 0;
  for (int64_t i = 0; i < length; ++i) squares += (at(i) - m.mean) * (at(i) - m.mean);
  m.inverse = 1 / std::sqrt(squares / count + epsilon);
  return m;
}

// Dims of X with 1 from `axis` on: of a statistic for each row.
Dims RowStatistic(const Dims& x, int axis);
// Fails unless input `i` broadcasts to dims [axis, rank) of x, one row.
void CheckRowParameter(const InferContext& c, size_t i, const Dims& x, int axis);

// Rows of channel groups: y = (x - mean) * inverse * scale[c] + bias[c] with the moments of each
// group of each batch entry. `parameter(channel)` gives the index of scale and bias.
template <typename T, typename F>
void NormalizeGroups(const OpCall& call, int64_t groups, double epsilon, F parameter) {
  const Shape& shape = call.x(0).shape();
  const int64_t channels = shape[1], plane = shape.Product(2, shape.rank());
  if (call.x(0).elements() == 0) return;
  const int64_t group_channels = channels / groups, length = group_channels * plane;
  const T* x = call.x(0).template data<T>();
  const T* scale = call.x(1).template data<T>();
  const T* bias = call.x(2).template data<T>();
  T* y = call.y(0).template data<T>();
  ParallelFor(shape[0] * groups, 8192 / length + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* from = x + row * length;
      T* to = y + row * length;
      const RowMoments m =
          MomentsOf(length, epsilon, true, [from](int64_t i) { return Widen(from[i]); });
      for (int64_t i = 0; i < length; ++i) {
        const int64_t at = parameter(row % groups * group_channels + i / plane);
        to[i] =
            Narrow<T>((Widen(from[i]) - m.mean) * m.inverse * Widen(scale[at]) + Widen(bias[at]));
      }
    }
  });
}

// Rows over dims [axis, rank) of x: y = x * inverse * scale without a mean; inverse(row, value) is
// told each row's.
template <typename T, typename V, typename F>
void NormalizeRootMeanSquare(const OpCall& call, F inverse) {
  const Shape& shape = call.x(0).shape();
  const int axis = NormalizeAxis(call.attrs().Int("axis", -1), shape.rank(), call.schema->name);
  const double epsilon = call.attrs().Float("epsilon", 1e-5F);
  const int64_t rows = shape.Product(0, axis), length = shape.Product(axis, shape.rank());
  const Shape row_shape(shape.dims().subspan(static_cast<size_t>(axis)));
  const BroadcastWalk<1> walk(row_shape, {&call.x(1).shape()});
  const T* x = call.x(0).template data<T>();
  const V* scale = call.x(1).template data<V>();
  V* y = call.y(0).template data<V>();
  ParallelFor(rows, 8192 / std::max<int64_t>(length, 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* from = x + row * length;
      const RowMoments m =
          MomentsOf(length, epsilon, false, [from](int64_t i) { return Widen(from[i]); });
      walk.Run(0, length, [&](int64_t i, const std::array<int64_t, 1>& at) {
        y[row * length + i] = Narrow<V>(Widen(from[i]) * m.inverse * Widen(scale[at[0]]));
      });
      inverse(row, m.inverse);
    }
  });
}

// 8 operations per element: mean 1, variance 3, result 4.
Cost NormCost(const OpCall& call);

}  // namespace whimbrel
