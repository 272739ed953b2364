// Reference of Resize and Upsample: every output element for itself, over all its taps.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "whimbrel/kernels/ops/resize_geometry.h"
#include "whimbrel/kernels/reference.h"

namespace whimbrel {
namespace {

// Integers: values within 1e-6 of an integer are that integer (the weights are not exact), others
// are cut towards 0, or rounded under antialias, as ONNX Runtime does; beyond the type they
// saturate.
template <typename T>
T FromDouble(double value, bool round) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (std::is_integral_v<T>) {
    const double near = std::round(value);
    const double whole = round || std::abs(value - near) < 1e-6 ? near : std::trunc(value);
    if (!(whole > static_cast<double>(std::numeric_limits<T>::min()))) {
      return std::numeric_limits<T>::min();
    }
    if (whole >= static_cast<double>(std::numeric_limits<T>::max())) {
      return std::numeric_limits<T>::max();
    }
    return static_cast<T>(whole);
  } else {
    return Narrow<T>(value);
  }
}

template <typename T>
void RunNearest(const ResizePlan& plan, const T* x, const Shape& in, T* y) {
  const auto strides = in.Strides();
  const auto last = static_cast<size_t>(plan.rank - 1);
  const int64_t length = plan.out[plan.rank - 1];
  ParallelFor(plan.out.elements() / length, 1 + 4096 / length, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t rest = row;
      int64_t from = 0;
      bool outside = false;
      for (size_t d = last; d-- > 0;) {
        const ResizeAxis& axis = plan.axes[d];
        const int64_t at = NearestSource(plan, axis, rest % axis.out);
        rest /= axis.out;
        outside = outside || at < 0;
        from += at * strides[d];
      }
      T* to = y + row * length;
      for (int64_t i = 0; i < length; ++i) {
        const int64_t at = outside ? -1 : NearestSource(plan, plan.axes[last], i);
        to[i] = at < 0 ? FromDouble<T>(plan.extrapolation, false) : x[from + at];
      }
    }
  });
}

// The weighted sum over the taps of axes d, d + 1, ...; a weight of 0 keeps Inf and NaN out.
template <typename T>
double Blend(const ResizePlan& plan, const std::array<ResizeTaps, kMaxRank>& taps,
             const std::array<int64_t, kMaxRank>& strides, const T* x, size_t d) {
  if (d == static_cast<size_t>(plan.rank)) return static_cast<double>(Widen(*x));
  const ResizeAxis& axis = plan.axes[d];
  const ResizeTaps& t = taps[d];
  if (axis.identity) return Blend(plan, taps, strides, x + t.first * strides[d], d + 1);
  double sum = 0;
  for (int64_t p = t.first; p < t.first + t.count; ++p) {
    const double weight = TapWeight(plan, axis, t, p);
    if (weight == 0) continue;
    const int64_t at = std::clamp<int64_t>(p, 0, axis.in - 1);
    sum += weight * Blend(plan, taps, strides, x + at * strides[d], d + 1);
  }
  return sum;
}

template <typename T>
void RunWeighted(const ResizePlan& plan, const T* x, const Shape& in, T* y) {
  const auto strides = in.Strides();
  const auto last = static_cast<size_t>(plan.rank - 1);
  const int64_t length = plan.out[plan.rank - 1];
  ParallelFor(plan.out.elements() / length, 1 + 256 / length, [&](int64_t begin, int64_t end) {
    std::array<ResizeTaps, kMaxRank> taps{};
    for (int64_t row = begin; row < end; ++row) {
      int64_t rest = row;
      bool outside = false;
      for (size_t d = last; d-- > 0;) {
        taps[d] = TapsOf(plan, plan.axes[d], rest % plan.axes[d].out);
        rest /= plan.axes[d].out;
        outside = outside || taps[d].outside;
      }
      T* to = y + row * length;
      for (int64_t i = 0; i < length; ++i) {
        taps[last] = TapsOf(plan, plan.axes[last], i);
        const double value =
            outside || taps[last].outside ? plan.extrapolation : Blend(plan, taps, strides, x, 0);
        to[i] = FromDouble<T>(value, plan.antialias);
      }
    }
  });
}

}  // namespace

void RunResize(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const ResizePlan plan = PlanResize(call);
  const Shape& in = call.x(0).shape();
  call.ResizeOutput(0, call.x(0).dtype(), plan.out);
  if (plan.out.elements() == 0) return;
  DispatchReference<kAllTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    T* y = call.y(0).data<T>();
    if (plan.rank == 0) {
      y[0] = x[0];
    } else if (plan.mode == ResizeMode::kNearest) {
      RunNearest(plan, x, in, y);
    } else {
      RunWeighted(plan, x, in, y);
    }
  });
}

}  // namespace whimbrel
