// Source coordinates and filter weights of Resize.

#include <algorithm>
#include <cmath>

#include "whimbrel/kernels/ops/resize_geometry.h"

namespace whimbrel {
namespace {

int64_t FloorOf(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

int64_t CeilOf(int64_t a, int64_t b) {
  return -FloorOf(-a, b);
}

// Source coordinate as an exact fraction; not for tf_crop_and_resize.
Fraction SourceFraction(const ResizePlan& plan, const ResizeAxis& axis, int64_t i) {
  const auto [num, den] = axis.scale;
  const Fraction half_pixel{(2 * i + 1) * den - num, 2 * num};
  switch (plan.transform) {
    case ResizeTransform::kHalfPixel:
      return half_pixel;
    case ResizeTransform::kHalfPixelSymmetric:
      return {half_pixel.num + axis.in * num - axis.out * den, half_pixel.den};
    case ResizeTransform::kPytorchHalfPixel:
      return axis.out > 1 ? half_pixel : Fraction{0, 1};
    case ResizeTransform::kAlignCorners:
      // The specification's output length is in * scale, not what remains of it as a whole number.
      return axis.in * num > den ? Fraction{i * (axis.in - 1) * den, axis.in * num - den} : Fraction{0, 1};
    case ResizeTransform::kAsymmetric:
      return {i * den, num};
    case ResizeTransform::kTfHalfPixelForNn:
      return {(2 * i + 1) * den, 2 * num};
    case ResizeTransform::kTfCropAndResize:
      break;
  }
  return {i, 1};
}

double CropCoordinate(const ResizeAxis& axis, int64_t i) {
  const auto last = static_cast<double>(axis.in - 1);
  if (axis.out <= 1) return 0.5 * (axis.roi_start + axis.roi_end) * last;
  return axis.roi_start * last + static_cast<double>(i) * (axis.roi_end - axis.roi_start) * last /
                                     static_cast<double>(axis.out - 1);
}

int64_t RoundFraction(ResizeRounding rounding, const Fraction& x, bool shrinks) {
  switch (rounding) {
    case ResizeRounding::kFloor:
      return FloorOf(x.num, x.den);
    case ResizeRounding::kCeil:
      return CeilOf(x.num, x.den);
    case ResizeRounding::kRoundPreferFloor:
      return CeilOf(2 * x.num - x.den, 2 * x.den);
    case ResizeRounding::kRoundPreferCeil:
      return FloorOf(2 * x.num + x.den, 2 * x.den);
    case ResizeRounding::kSimple:
      break;
  }
  return shrinks ? CeilOf(x.num, x.den) : FloorOf(x.num, x.den);
}

// For tf_crop_and_resize; x lies within the axis.
int64_t RoundCoordinate(ResizeRounding rounding, double x) {
  switch (rounding) {
    case ResizeRounding::kCeil:
      return static_cast<int64_t>(std::ceil(x));
    case ResizeRounding::kRoundPreferFloor:
      return static_cast<int64_t>(std::ceil(x - 0.5));
    case ResizeRounding::kRoundPreferCeil:
      return static_cast<int64_t>(std::floor(x + 0.5));
    case ResizeRounding::kFloor:
    case ResizeRounding::kSimple:
      break;
  }
  return static_cast<int64_t>(std::floor(x));
}

bool Outside(const ResizeAxis& axis, double x) {
  return x < 0 || x > static_cast<double>(axis.in - 1);
}

// The filters, of width 2 and 4: a triangle, and Keys 1981 eq. 4.
double FilterAt(const ResizePlan& plan, double distance) {
  const double t = std::abs(distance);
  if (plan.mode == ResizeMode::kLinear) return t < 1 ? 1 - t : 0;
  const double a = plan.cubic_a;
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? a * (((t - 5) * t + 8) * t - 4) : 0;
}

}  // namespace

int64_t NearestSource(const ResizePlan& plan, const ResizeAxis& axis, int64_t i) {
  if (axis.identity) return i;
  int64_t source = 0;
  if (plan.transform == ResizeTransform::kTfCropAndResize) {
    const double x = CropCoordinate(axis, i);
    if (Outside(axis, x)) return -1;
    source = RoundCoordinate(plan.rounding, x);
  } else {
    source = RoundFraction(plan.rounding, SourceFraction(plan, axis, i),
                           axis.scale.num < axis.scale.den);
  }
  return std::clamp<int64_t>(source, 0, axis.in - 1);
}

ResizeTaps TapsOf(const ResizePlan& plan, const ResizeAxis& axis, int64_t i) {
  ResizeTaps taps;
  if (axis.identity) {
    taps.first = i;
    taps.x = static_cast<double>(i);
    return taps;
  }
  if (plan.transform == ResizeTransform::kTfCropAndResize) {
    taps.x = CropCoordinate(axis, i);
    taps.outside = Outside(axis, taps.x);
    if (taps.outside) return taps;
  } else {
    const Fraction x = SourceFraction(plan, axis, i);
    taps.x = static_cast<double>(x.num) / static_cast<double>(x.den);
  }
  if (plan.antialias && axis.scale.num < axis.scale.den) {
    taps.stretch = static_cast<double>(axis.scale.num) / static_cast<double>(axis.scale.den);
  }
  const double reach = (plan.mode == ResizeMode::kLinear ? 1 : 2) / taps.stretch;
  taps.first = static_cast<int64_t>(std::floor(taps.x - reach)) + 1;
  taps.count = static_cast<int64_t>(std::ceil(taps.x + reach)) - taps.first;
  if (taps.stretch == 1 && !plan.exclude_outside) return taps;
  double sum = 0;
  for (int64_t p = taps.first; p < taps.first + taps.count; ++p) {
    sum += TapWeight(plan, axis, taps, p);
  }
  if (sum != 0) taps.norm = sum;
  return taps;
}

double TapWeight(const ResizePlan& plan, const ResizeAxis& axis, const ResizeTaps& taps,
                 int64_t position) {
  if (axis.identity) return 1;
  if (plan.exclude_outside && (position < 0 || position >= axis.in)) return 0;
  return FilterAt(plan, (static_cast<double>(position) - taps.x) * taps.stretch) / taps.norm;
}

}  // namespace whimbrel
