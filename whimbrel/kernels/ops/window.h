// Window: the sliding windows that convolutions and pools share: attributes, output extents, valid
// ranges.

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "whimbrel/kernels/kernels.h"

namespace whimbrel {

constexpr int kMaxSpatial = kMaxRank - 2;
using SpatialArray = std::array<int64_t, kMaxSpatial>;

enum class AutoPad : uint8_t { kNotSet, kValid, kSameUpper, kSameLower };

// The attributes as written, defaults filled in and checked: strides and dilations 1..2^31, pads
// 0..2^31.
struct WindowAttributes {
  int spatial = 0;
  SpatialArray kernel{};  // 0 = not known yet (weights of unknown shape)
  SpatialArray stride{}, dilation{};
  SpatialArray pad_begin{}, pad_end{};  // as written; 0 under another auto_pad
  AutoPad auto_pad = AutoPad::kNotSet;
  bool ceil_mode = false;

  int64_t extent(int axis) const;  // of one dilated window
};

// Kernel extents come from `kernel` when it is not empty (and must equal the attribute
// kernel_shape), else from kernel_shape. Throws kInvalidData naming op, attribute and figures.
WindowAttributes ReadWindowAttributes(std::string_view op, const Attributes& attributes,
                                      int spatial, std::span<const int64_t> kernel = {});

// Windows along one axis; kInvalidData when not one fits.
Dim WindowOutput(std::string_view op, const WindowAttributes& window, int axis, const Dim& in);

// Everything resolved. Arrays hold the first `spatial` entries, outermost axis first ([D,] H, W).
struct WindowGeometry {
  int spatial = 0;
  SpatialArray in{}, out{}, kernel{}, stride{}, dilation{};
  SpatialArray pad_begin{}, pad_end{};  // resolved from auto_pad

  int64_t in_size() const { return ProductOfSpatial(in); }
  int64_t out_size() const { return ProductOfSpatial(out); }
  int64_t kernel_size() const { return ProductOfSpatial(kernel); }
  int64_t ProductOfSpatial(const SpatialArray& dims, int end = kMaxSpatial) const;
  // First input position under window `position`; may be negative (padding).
  int64_t Start(int axis, int64_t position) const;
  // Window positions [begin, end) whose tap `tap` lies on the input and not on padding.
  struct Range {
    int64_t begin, end;
  };
  Range ValidPositions(int axis, int64_t tap) const;
};

// `in`: the spatial dims of the data.
WindowGeometry MakeWindowGeometry(std::string_view op, const WindowAttributes& window,
                                  std::span<const int64_t> in);

// Index `flat` of a box with the first `axes` dims, taken apart.
SpatialArray Unflatten(int64_t flat, const SpatialArray& dims, int axes);

}  // namespace whimbrel
