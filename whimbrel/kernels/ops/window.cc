// Window attributes, extents and ranges.

#include "whimbrel/kernels/ops/window.h"

#include <algorithm>

#include <fmt/format.h>

namespace whimbrel {
namespace {

// Larger figures are damage, and below it no sum or product here overflows.
constexpr int64_t kMaxFigure = int64_t{1} << 31;

SpatialArray ReadFigures(std::string_view op, const Attributes& attributes, std::string_view name,
                         int spatial, int64_t least, int64_t otherwise) {
  SpatialArray figures{};
  std::fill_n(figures.begin(), spatial, otherwise);
  const auto given = attributes.Ints(name);
  if (given.empty()) return figures;
  if (given.size() != static_cast<size_t>(spatial)) {
    throw Error(Code::kInvalidData,
                fmt::format("{}: attribute {} has {} entries for {} spatial axes", op, name,
                            given.size(), spatial));
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] < least || given[i] > kMaxFigure) {
      throw Error(Code::kInvalidData, fmt::format("{}: attribute {} holds {}, allowed are {} to {}",
                                                  op, name, given[i], least, kMaxFigure));
    }
    figures[i] = given[i];
  }
  return figures;
}

void ReadPads(std::string_view op, const Attributes& attributes, WindowAttributes& window) {
  const auto pads = attributes.Ints("pads");
  if (pads.empty()) return;
  const auto spatial = static_cast<size_t>(window.spatial);
  if (pads.size() != 2 * spatial) {
    throw Error(Code::kInvalidData,
                fmt::format("{}: attribute pads has {} entries for {} spatial axes", op,
                            pads.size(), spatial),
                "it needs a begin for each axis, then an end for each");
  }
  for (int64_t pad : pads) {
    if (pad < 0 || pad > kMaxFigure) {
      throw Error(
          Code::kInvalidData,
          fmt::format("{}: attribute pads holds {}, allowed are 0 to {}", op, pad, kMaxFigure));
    }
  }
  if (window.auto_pad != AutoPad::kNotSet) return;
  std::copy_n(pads.begin(), spatial, window.pad_begin.begin());
  std::copy_n(pads.begin() + window.spatial, spatial, window.pad_end.begin());
}

AutoPad ReadAutoPad(std::string_view op, const Attributes& attributes) {
  const std::string_view text = attributes.String("auto_pad", "NOTSET");
  if (text == "NOTSET" || text.empty()) return AutoPad::kNotSet;
  if (text == "VALID") return AutoPad::kValid;
  if (text == "SAME_UPPER") return AutoPad::kSameUpper;
  if (text == "SAME_LOWER") return AutoPad::kSameLower;
  throw Error(Code::kInvalidData, fmt::format("{}: auto_pad \"{}\" is not known", op, text),
              "it is NOTSET, VALID, SAME_UPPER or SAME_LOWER");
}

bool Same(AutoPad pad) {
  return pad == AutoPad::kSameUpper || pad == AutoPad::kSameLower;
}

}  // namespace

int64_t WindowAttributes::extent(int axis) const {
  const auto i = static_cast<size_t>(axis);
  return (kernel[i] - 1) * dilation[i] + 1;
}

WindowAttributes ReadWindowAttributes(std::string_view op, const Attributes& attributes,
                                      int spatial, std::span<const int64_t> kernel) {
  if (spatial < 1 || spatial > kMaxSpatial) {
    throw Error(
        Code::kInvalidData,
        fmt::format("{}: data of rank {}, it needs batch, channels and 1 to {} spatial axes", op,
                    spatial + 2, kMaxSpatial));
  }
  WindowAttributes window;
  window.spatial = spatial;
  window.auto_pad = ReadAutoPad(op, attributes);
  window.ceil_mode = attributes.Int("ceil_mode", 0) != 0;
  window.kernel = ReadFigures(op, attributes, "kernel_shape", spatial, 1, 0);
  window.stride = ReadFigures(op, attributes, "strides", spatial, 1, 1);
  window.dilation = ReadFigures(op, attributes, "dilations", spatial, 1, 1);
  ReadPads(op, attributes, window);
  for (size_t i = 0; i < kernel.size(); ++i) {
    if (kernel[i] == 0) continue;  // not known
    if (kernel[i] < 0 || kernel[i] > kMaxFigure) {
      throw Error(Code::kInvalidData, fmt::format("{}: a kernel extent of {}", op, kernel[i]));
    }
    if (window.kernel[i] != 0 && window.kernel[i] != kernel[i]) {
      throw Error(Code::kInvalidData,
                  fmt::format("{}: kernel_shape says {} where the weights have {}", op,
                              window.kernel[i], kernel[i]));
    }
    window.kernel[i] = kernel[i];
  }
  return window;
}

Dim WindowOutput(std::string_view op, const WindowAttributes& window, int axis, const Dim& in) {
  const auto i = static_cast<size_t>(axis);
  const int64_t stride = window.stride[i];
  if (Same(window.auto_pad)) return CeilDiv(in, stride);
  if (window.kernel[i] == 0) return Dim();
  const int64_t extent = window.extent(axis);
  // floor((in + pads - extent) / stride) + 1, with the 1 drawn in: "(H+1)/2" reads better
  const int64_t shift = window.pad_begin[i] + window.pad_end[i] - extent;
  if (!in.known()) {
    if (!window.ceil_mode) return FloorDiv(in + Dim(shift + stride), stride);
    // the last window may have to go, see below; never when its overhang is shorter than the window
    if (window.pad_end[i] + stride - 1 < extent) return CeilDiv(in + Dim(shift + stride), stride);
    return Dim();
  }
  // With ceil_mode one window may hang over data that is shorter than it: ceil(-2 / 3) + 1 = 1.
  const int64_t least = window.ceil_mode && in.value() > 0 ? 1 - stride : 0;
  if (in.value() > (int64_t{1} << 62) || in.value() + shift < least) {
    throw Error(
        Code::kInvalidData,
        fmt::format("{}: a window of {} does not fit spatial axis {} of {} with pads {} and {}", op,
                    extent, axis, in.value(), window.pad_begin[i], window.pad_end[i]));
  }
  const int64_t room = in.value() + shift;
  if (!window.ceil_mode) return room / stride + 1;
  int64_t out = room / stride + (room > 0 && room % stride != 0 ? 1 : 0) + 1;
  // a window that would start in the padding behind the data is none
  if ((out - 1) * stride >= in.value() + window.pad_begin[i]) --out;
  return std::max<int64_t>(out, 1);
}

int64_t WindowGeometry::ProductOfSpatial(const SpatialArray& dims, int end) const {
  int64_t product = 1;
  for (int i = 0; i < std::min(end, spatial); ++i) product *= dims[static_cast<size_t>(i)];
  return product;
}

int64_t WindowGeometry::Start(int axis, int64_t position) const {
  const auto i = static_cast<size_t>(axis);
  return position * stride[i] - pad_begin[i];
}

WindowGeometry::Range WindowGeometry::ValidPositions(int axis, int64_t tap) const {
  const auto i = static_cast<size_t>(axis);
  // 0 <= position * stride + shift < in
  const int64_t shift = tap * dilation[i] - pad_begin[i];
  const int64_t begin = shift >= 0 ? 0 : (-shift + stride[i] - 1) / stride[i];
  const int64_t end = in[i] - shift <= 0 ? 0 : (in[i] - shift + stride[i] - 1) / stride[i];
  return {std::min(begin, out[i]), std::max(std::min(begin, out[i]), std::min(end, out[i]))};
}

WindowGeometry MakeWindowGeometry(std::string_view op, const WindowAttributes& window,
                                  std::span<const int64_t> in) {
  WindowGeometry g;
  g.spatial = window.spatial;
  g.kernel = window.kernel;
  g.stride = window.stride;
  g.dilation = window.dilation;
  g.pad_begin = window.pad_begin;
  g.pad_end = window.pad_end;
  for (int axis = 0; axis < g.spatial; ++axis) {
    const auto i = static_cast<size_t>(axis);
    g.in[i] = in[i];
    g.out[i] = WindowOutput(op, window, axis, Dim(in[i])).value();
    if (!Same(window.auto_pad)) continue;
    const int64_t total =
        std::max<int64_t>(0, (g.out[i] - 1) * g.stride[i] + window.extent(axis) - in[i]);
    const int64_t less = total / 2;
    g.pad_begin[i] = window.auto_pad == AutoPad::kSameUpper ? less : total - less;
    g.pad_end[i] = total - g.pad_begin[i];
  }
  return g;
}

SpatialArray Unflatten(int64_t flat, const SpatialArray& dims, int axes) {
  SpatialArray at{};
  for (int axis = axes - 1; axis >= 0; --axis) {
    const auto i = static_cast<size_t>(axis);
    at[i] = flat % dims[i];
    flat /= dims[i];
  }
  return at;
}

}  // namespace whimbrel
