// resize_geometry: which input elements, with which weights, make an output element of Resize.

#pragma once

#include <array>
#include <cstdint>

#include "whimbrel/kernels/kernels.h"

namespace whimbrel {

enum class ResizeMode : uint8_t { kNearest, kLinear, kCubic };
enum class ResizeTransform : uint8_t {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfHalfPixelForNn,  // opset 11 only
  kTfCropAndResize,
};
// kSimple: opset 10 and Upsample; down when an axis grows, up when it shrinks.
enum class ResizeRounding : uint8_t { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil, kSimple };

// A scale as a fraction, so that source indices are exact. A float scale stands for the simplest
// fraction that rounds to it: 0.33333334f is 1/3, which the exporter meant.
struct Fraction {
  int64_t num = 1;
  int64_t den = 1;
};
Fraction SimplestFraction(float scale);

struct ResizeAxis {
  int64_t in = 1;
  int64_t out = 1;
  Fraction scale;
  double roi_start = 0;
  double roi_end = 1;
  bool identity = true;  // output element i is input element i
};

struct ResizePlan {
  int rank = 0;
  std::array<ResizeAxis, kMaxRank> axes{};
  Shape out;
  ResizeMode mode = ResizeMode::kNearest;
  ResizeTransform transform = ResizeTransform::kHalfPixel;
  ResizeRounding rounding = ResizeRounding::kRoundPreferFloor;
  double cubic_a = -0.75;
  double extrapolation = 0;  // for elements outside under kTfCropAndResize
  bool exclude_outside = false;
  bool antialias = false;
};

// Attributes and the contents of the inputs; nullptr or no elements = left out. kInvalidData on
// nonsense. Does not allocate.
struct ResizeInputs {
  const Tensor* roi = nullptr;
  const Tensor* scales = nullptr;
  const Tensor* sizes = nullptr;
};
ResizePlan PlanResize(const OpSchema& schema, const Attributes& attributes, const Shape& in,
                      const ResizeInputs& inputs);
ResizePlan PlanResize(const OpCall& call);  // at run time, or when the inputs are constant

// Input index of output element i on one axis under kNearest; -1 = the extrapolation value.
int64_t NearestSource(const ResizePlan& plan, const ResizeAxis& axis, int64_t i);

// Positions [first, first + count) contribute to an element; those outside the axis stand for its
// edge. The weights sum up to 1.
struct ResizeTaps {
  int64_t first = 0;
  int64_t count = 1;
  bool outside = false;  // the extrapolation value is taken instead
  double x = 0;          // source coordinate
  double stretch = 1;    // below 1 when antialiasing widens the filter
  double norm = 1;
};
ResizeTaps TapsOf(const ResizePlan& plan, const ResizeAxis& axis, int64_t i);
double TapWeight(const ResizePlan& plan, const ResizeAxis& axis, const ResizeTaps& taps,
                 int64_t position);

// Where the op keeps its inputs: 0 when it has none of that kind.
struct ResizeInputIndex {
  size_t roi = 0;
  size_t scales = 0;
  size_t sizes = 0;
};
ResizeInputIndex ResizeInputIndexOf(const OpSchema& schema);

// Shared by the schemas of Resize and Upsample.
void InferResize(InferContext& c);
Cost ResizeCost(const OpCall& call);
void RunResize(const OpCall& call, std::span<std::byte> workspace, Stream& stream);

}  // namespace whimbrel
