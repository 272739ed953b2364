// Plans and source coordinates of Resize.

#include "whimbrel/kernels/ops/resize_geometry.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

// With axes up to this long all products of coordinates stay within 64 bits.
constexpr int64_t kMostLength = int64_t{1} << 30;

[[noreturn]] void Fail(const OpSchema& schema, const std::string& what) {
  throw Error(Code::kInvalidData, fmt::format("{}: {}", schema.name, what));
}

ResizeMode ModeOf(const OpSchema& schema, std::string_view name) {
  if (name == "nearest") return ResizeMode::kNearest;
  if (name == "linear") return ResizeMode::kLinear;
  if (name == "cubic" && schema.name == "Resize" && schema.since >= 11) return ResizeMode::kCubic;
  Fail(schema, fmt::format("mode \"{}\" is not known at opset {}", name, schema.since));
}

ResizeTransform TransformOf(const OpSchema& schema, std::string_view name) {
  struct Known {
    std::string_view name;
    ResizeTransform transform;
    int since = 11;
    int until = INT_MAX;
  };
  static constexpr Known known_names[] = {
      {"half_pixel", ResizeTransform::kHalfPixel},
      {"half_pixel_symmetric", ResizeTransform::kHalfPixelSymmetric, 19},
      {"pytorch_half_pixel", ResizeTransform::kPytorchHalfPixel},
      {"align_corners", ResizeTransform::kAlignCorners},
      {"asymmetric", ResizeTransform::kAsymmetric},
      {"tf_half_pixel_for_nn", ResizeTransform::kTfHalfPixelForNn, 11, 13},
      {"tf_crop_and_resize", ResizeTransform::kTfCropAndResize},
  };
  for (const Known& known : known_names) {
    if (known.name == name && schema.since >= known.since && schema.since < known.until) {
      return known.transform;
    }
  }
  Fail(schema, fmt::format("coordinate_transformation_mode \"{}\" is not known at opset {}", name,
                           schema.since));
}

ResizeRounding RoundingOf(const OpSchema& schema, std::string_view name) {
  if (name == "round_prefer_floor") return ResizeRounding::kRoundPreferFloor;
  if (name == "round_prefer_ceil") return ResizeRounding::kRoundPreferCeil;
  if (name == "floor") return ResizeRounding::kFloor;
  if (name == "ceil") return ResizeRounding::kCeil;
  Fail(schema, fmt::format("nearest_mode \"{}\" is not known", name));
}

// Modes and switches; no shapes yet.
ResizePlan PlanOfAttributes(const OpSchema& schema, const Attributes& attributes) {
  ResizePlan plan;
  plan.mode = ModeOf(schema, attributes.String("mode", "nearest"));
  if (schema.name == "Upsample" || schema.since < 11) {
    plan.transform = ResizeTransform::kAsymmetric;
    plan.rounding = ResizeRounding::kSimple;
    return plan;
  }
  plan.transform =
      TransformOf(schema, attributes.String("coordinate_transformation_mode", "half_pixel"));
  plan.rounding = RoundingOf(schema, attributes.String("nearest_mode", "round_prefer_floor"));
  plan.cubic_a = attributes.Float("cubic_coeff_a", -0.75);
  plan.extrapolation = attributes.Float("extrapolation_value", 0);
  plan.exclude_outside = attributes.Int("exclude_outside", 0) != 0;
  plan.antialias = attributes.Int("antialias", 0) != 0 && plan.mode != ResizeMode::kNearest;
  return plan;
}

bool CropsToRoi(const ResizePlan& plan) {
  return plan.transform == ResizeTransform::kTfCropAndResize;
}

// The axes that roi, scales and sizes speak of.
struct AxisChoice {
  int count = 0;
  std::array<int, kMaxRank> axes{};
};

AxisChoice ChooseAxes(const OpSchema& schema, const Attributes& attributes, int rank) {
  AxisChoice choice;
  const auto named = attributes.Ints("axes");
  if (named.empty()) {
    choice.count = rank;
    std::iota(choice.axes.begin(), choice.axes.end(), 0);
    return choice;
  }
  uint32_t seen = 0;
  for (int64_t value : named) {
    const int axis = NormalizeAxis(value, rank, schema.name);
    if ((seen >> axis & 1U) != 0) Fail(schema, fmt::format("axis {} is named twice", axis));
    seen |= 1U << axis;
    choice.axes[static_cast<size_t>(choice.count++)] = axis;
  }
  return choice;
}

enum class Aspect : uint8_t { kStretch, kNotLarger, kNotSmaller };

Aspect AspectOf(const OpSchema& schema, const Attributes& attributes) {
  const std::string_view name = attributes.String("keep_aspect_ratio_policy", "stretch");
  if (name == "stretch") return Aspect::kStretch;
  if (name == "not_larger") return Aspect::kNotLarger;
  if (name == "not_smaller") return Aspect::kNotSmaller;
  Fail(schema, fmt::format("keep_aspect_ratio_policy \"{}\" is not known", name));
}

Fraction Reduced(int64_t num, int64_t den) {
  const int64_t divisor = std::gcd(num, den);
  return divisor == 0 ? Fraction{} : Fraction{num / divisor, den / divisor};
}

// In float, as the ONNX inference and ONNX Runtime multiply: 0.7f * 30 is 21, not 20.9999996.
int64_t ScaledLength(const OpSchema& schema, int64_t in, float scale, double extent) {
  if (!(scale > 0) || !std::isfinite(scale)) {
    Fail(schema, fmt::format("scale {} is not above 0", scale));
  }
  const float length = static_cast<float>(in) * scale * static_cast<float>(extent);
  if (!(length < 0x1p58F))
    Fail(schema, fmt::format("an axis of {} times {} is too long", in, scale));
  return length < 0 ? 0 : static_cast<int64_t>(std::floor(length));
}

// Sets lengths and scales from `sizes`.
void TakeSizes(const OpSchema& schema, const Attributes& attributes, const AxisChoice& choice,
               const Tensor& sizes, ResizePlan& plan) {
  const Aspect aspect = AspectOf(schema, attributes);
  Fraction common;  // of the axis that decides
  for (int k = 0; k < choice.count; ++k) {
    ResizeAxis& axis = plan.axes[static_cast<size_t>(choice.axes[static_cast<size_t>(k)])];
    axis.out = ElementAsInt64(sizes, k);
    if (axis.out < 0) Fail(schema, fmt::format("size {} is negative", axis.out));
    if (std::max(axis.in, axis.out) > kMostLength) {
      if (axis.in == axis.out && aspect == Aspect::kStretch) continue;
      Fail(schema, fmt::format("a resized axis may have 2^30 elements, not {}",
                               std::max(axis.in, axis.out)));
    }
    axis.scale = axis.in == 0 || axis.out == 0 ? Fraction{} : Reduced(axis.out, axis.in);
    if (aspect == Aspect::kStretch) continue;
    if (axis.in == 0 || axis.out == 0) Fail(schema, "an empty axis has no aspect ratio");
    const int64_t here = axis.scale.num * common.den;
    const int64_t best = common.num * axis.scale.den;
    if (k == 0 || (aspect == Aspect::kNotLarger ? here < best : here > best)) common = axis.scale;
  }
  if (aspect == Aspect::kStretch) return;
  for (int k = 0; k < choice.count; ++k) {
    ResizeAxis& axis = plan.axes[static_cast<size_t>(choice.axes[static_cast<size_t>(k)])];
    axis.scale = common;
    axis.out = (2 * axis.in * common.num + common.den) / (2 * common.den);  // half goes up
    if (axis.out > kMostLength) Fail(schema, "a resized axis has more than 2^30 elements");
  }
}

void TakeScales(const OpSchema& schema, const AxisChoice& choice, const Tensor* scales,
                std::span<const float> values, ResizePlan& plan) {
  for (int k = 0; k < choice.count; ++k) {
    ResizeAxis& axis = plan.axes[static_cast<size_t>(choice.axes[static_cast<size_t>(k)])];
    const float scale =
        scales != nullptr ? scales->data<float>()[k] : values[static_cast<size_t>(k)];
    const double extent = CropsToRoi(plan) ? axis.roi_end - axis.roi_start : 1;
    axis.out = ScaledLength(schema, axis.in, scale, extent);
    if (axis.in == axis.out && scale == 1.0F) continue;
    if (std::max(axis.in, axis.out) > kMostLength) {
      Fail(schema, fmt::format("a resized axis may have 2^30 elements, not {}",
                               std::max(axis.in, axis.out)));
    }
    if (axis.in > 0 && axis.out > 0) axis.scale = SimplestFraction(scale);
  }
}

bool Given(const Tensor* t) {
  return t != nullptr && t->elements() > 0;
}

}  // namespace

Fraction SimplestFraction(float scale) {
  WHIMBREL_CHECK(scale > 0);
  // All reals between these round to `scale`.
  const double value = scale;
  const float infinity = std::numeric_limits<float>::infinity();
  double low = (value + std::nextafter(scale, 0.0F)) / 2;
  double high = (value + std::nextafter(scale, infinity)) / 2;
  // The continued fraction that both bounds share, cut where they part: a[k] are its terms. A float
  // in [2^-30, 2^30] needs fewer than 30.
  std::array<int64_t, 48> terms{};
  size_t count = 0;
  while (count < terms.size()) {
    const double whole = std::floor(low);
    if (whole == low || whole < std::floor(high) || whole > 0x1p53) {
      terms[count++] = static_cast<int64_t>(whole == low ? whole : whole + 1);
      break;
    }
    terms[count++] = static_cast<int64_t>(whole);
    const double next_low = 1 / (high - whole);
    high = 1 / (low - whole);
    low = next_low;
  }
  int64_t num = terms[count - 1];
  int64_t den = 1;
  for (size_t k = count - 1; k-- > 0;) {
    std::swap(num, den);
    num += terms[k] * den;
  }
  return {num, den};
}

ResizePlan PlanResize(const OpSchema& schema, const Attributes& attributes, const Shape& in,
                      const ResizeInputs& inputs) {
  ResizePlan plan = PlanOfAttributes(schema, attributes);
  plan.rank = in.rank();
  for (int d = 0; d < in.rank(); ++d) {
    ResizeAxis& axis = plan.axes[static_cast<size_t>(d)];
    axis.in = axis.out = in[d];
  }
  const AxisChoice choice = ChooseAxes(schema, attributes, in.rank());
  const bool crop = CropsToRoi(plan);
  if (crop) {
    if (!Given(inputs.roi) || inputs.roi->elements() != 2 * choice.count) {
      Fail(schema, fmt::format("tf_crop_and_resize needs a roi of {} values", 2 * choice.count));
    }
    for (int k = 0; k < choice.count; ++k) {
      ResizeAxis& axis = plan.axes[static_cast<size_t>(choice.axes[static_cast<size_t>(k)])];
      axis.roi_start = ElementAsDouble(*inputs.roi, k);
      axis.roi_end = ElementAsDouble(*inputs.roi, k + choice.count);
      if (!std::isfinite(axis.roi_start) || !std::isfinite(axis.roi_end)) {
        Fail(schema, "roi is not finite");
      }
    }
  }
  const auto values = attributes.Floats("scales");
  const bool by_scales = Given(inputs.scales) || !values.empty();
  const bool by_sizes = Given(inputs.sizes);
  if (by_scales && by_sizes) Fail(schema, "both scales and sizes are given");
  if (!by_scales && !by_sizes && choice.count > 0)
    Fail(schema, "neither scales nor sizes are given");
  const int64_t given = by_sizes               ? inputs.sizes->elements()
                        : Given(inputs.scales) ? inputs.scales->elements()
                                               : static_cast<int64_t>(values.size());
  if (given != choice.count) {
    Fail(schema, fmt::format("{} has {} values for {} axes", by_sizes ? "sizes" : "scales", given,
                             choice.count));
  }
  if (by_sizes) {
    TakeSizes(schema, attributes, choice, *inputs.sizes, plan);
  } else {
    TakeScales(schema, choice, Given(inputs.scales) ? inputs.scales : nullptr, values, plan);
  }
  std::array<int64_t, kMaxRank> out{};
  for (size_t d = 0; d < static_cast<size_t>(plan.rank); ++d) {
    ResizeAxis& axis = plan.axes[d];
    const bool whole = !crop || (axis.roi_start == 0 && axis.roi_end == 1);
    axis.identity = axis.in == axis.out && axis.scale.num == axis.scale.den && whole;
    out[d] = axis.out;
  }
  plan.out = Shape(std::span<const int64_t>(out.data(), static_cast<size_t>(plan.rank)));
  if (in.elements() == 0 && plan.out.elements() > 0) {
    Fail(schema,
         fmt::format("{} has no element to resize to {}", ToString(in), ToString(plan.out)));
  }
  return plan;
}

ResizeInputIndex ResizeInputIndexOf(const OpSchema& schema) {
  if (schema.name == "Upsample")
    return {.roi = 0, .scales = schema.since < 9 ? 0U : 1U, .sizes = 0};
  if (schema.since < 11) return {.roi = 0, .scales = 1, .sizes = 0};
  return {.roi = 1, .scales = 2, .sizes = 3};
}

ResizePlan PlanResize(const OpCall& call) {
  const ResizeInputIndex index = ResizeInputIndexOf(*call.schema);
  const auto input = [&](size_t i) { return i != 0 && call.has(i) ? call.in[i] : nullptr; };
  return PlanResize(*call.schema, call.attrs(), call.x(0).shape(),
                    {input(index.roi), input(index.scales), input(index.sizes)});
}

namespace {

// Dims when some are symbols: one axis at a time, no aspect ratio.
void InferSymbolic(InferContext& c, const Dims& in, Dims& out) {
  const ResizeInputIndex index = ResizeInputIndexOf(c.schema());
  const AxisChoice choice = ChooseAxes(c.schema(), c.attrs(), static_cast<int>(in.size()));
  const auto count = static_cast<size_t>(choice.count);
  const Tensor* scales = index.scales != 0 ? c.in(index.scales).constant.get() : nullptr;
  std::vector<float> values(c.attrs().Floats("scales").begin(), c.attrs().Floats("scales").end());
  if (Given(scales))
    values.assign(scales->data<float>(), scales->data<float>() + scales->elements());
  const auto sizes = index.sizes != 0 ? SmallElements(c, index.sizes) : std::nullopt;
  const bool stretch = AspectOf(c.schema(), c.attrs()) == Aspect::kStretch;
  const bool crop = CropsToRoi(PlanOfAttributes(c.schema(), c.attrs()));
  for (size_t k = 0; k < count; ++k) {
    const auto axis = static_cast<size_t>(choice.axes[k]);
    out[axis] = Dim();
    if (sizes && sizes->size() == count) {
      if (stretch) out[axis] = (*sizes)[k];
    } else if (values.size() == count && !crop) {
      if (!(values[k] > 0) || !std::isfinite(values[k])) {
        c.Fail(fmt::format("scale {} is not above 0", values[k]));
      }
      if (in[axis].known()) {
        out[axis] = ScaledLength(c.schema(), in[axis].value(), values[k], 1);
      } else if (values[k] > 0x1p-30F && values[k] < 0x1p30F) {
        const Fraction scale = SimplestFraction(values[k]);
        out[axis] = FloorDiv(in[axis] * Dim(scale.num), scale.den);
      }
    }
  }
}

}  // namespace

void InferResize(InferContext& c) {
  const ResizePlan attributes = PlanOfAttributes(c.schema(), c.attrs());
  AspectOf(c.schema(), c.attrs());
  const auto& in = c.in(0).dims;
  if (!in) return c.SetOut(0, c.in(0).dtype, std::nullopt);
  if (in->size() > kMaxRank) c.Fail(fmt::format("rank {} is above {}", in->size(), kMaxRank));
  const ResizeInputIndex index = ResizeInputIndexOf(c.schema());
  bool known = AllKnown(*in);
  const auto contents = [&](size_t i, bool needed) -> std::shared_ptr<const Tensor> {
    if (i == 0 || !c.has(i)) return nullptr;
    const ValueInfo& value = c.in(i);
    if (value.dims && value.dims->size() > 1) {
      c.Fail(fmt::format("input {} must have rank 1, is {}", i, ToString(*value.dims)));
    }
    if (value.constant && value.constant->has_data()) return value.constant;
    if (value.dims && value.dims->size() == 1 && value.dims->front().Is(0)) return nullptr;
    if (const auto integers = value.dtype == DType::kInt64 ? c.Integers(i) : std::nullopt) {
      return std::make_shared<const Tensor>(
          Tensor::FromValues(Shape{static_cast<int64_t>(integers->size())}, *integers));
    }
    known = known && !needed;
    return nullptr;
  };
  const auto roi = contents(index.roi, CropsToRoi(attributes));
  const auto scales = contents(index.scales, true);
  const auto sizes = contents(index.sizes, true);
  Dims out = *in;
  if (known) {
    out = ToDims(
        PlanResize(c.schema(), c.attrs(), ToShape(*in), {roi.get(), scales.get(), sizes.get()})
            .out);
  } else {
    InferSymbolic(c, *in, out);
  }
  c.SetOut(0, c.in(0).dtype, std::move(out));
}

// A multiply-add per tap: taps per resized axis are 2 or 4.
Cost ResizeCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  const std::string_view mode = call.attrs().String("mode", "nearest");
  if (mode == "nearest") cost.flops = 0;
  const Shape& in = call.x(0).shape();
  const Shape& out = call.y(0).shape();
  for (int d = 0; d < std::min(in.rank(), out.rank()); ++d) {
    if (in[d] != out[d]) cost.flops *= mode == "cubic" ? 8 : 4;
  }
  return cost;
}

}  // namespace whimbrel
