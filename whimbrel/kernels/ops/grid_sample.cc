// GridSample: y[n, c, p] = x[n, c] at the place that grid[n, p] names, interpolated along each
// axis.
//
// in   X     [batch, channels, in...]  any type; 1 to 6 spatial axes (2 before opset 20)
//      grid  [batch, out..., axes]  f32 | f64 | f16, from 22 bf16: -1 to 1 is one axis of X,
//            innermost axis first
// attr mode           nearest (half to even), linear (default) or cubic; before 20 bilinear,
// bicubic
//      padding_mode   zeros (default), border, or reflection, of what lies outside
//      align_corners  1: -1 and 1 are the centres of the first and last element, else their edges
// out  Y     [batch, channels, out...], type of X; integers lose the fraction
// Source: ONNX operator GridSample (16, 20, 22). cubic is Keys' with a = -0.75. NaN places are
// outside.

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/float_to_int.h"

namespace whimbrel {
namespace {

constexpr int kMaxAxes = kMaxRank - 2;
enum class Mode : uint8_t { kNearest, kLinear, kCubic };
enum class Padding : uint8_t { kZeros, kBorder, kReflection };

struct Sampling {
  Mode mode = Mode::kLinear;
  Padding padding = Padding::kZeros;
  bool align_corners = false;
};

Sampling ReadSampling(std::string_view op, const Attributes& attributes, int since) {
  Sampling s;
  const bool old = since < 20;
  const std::string_view mode = attributes.String("mode", old ? "bilinear" : "linear");
  if (mode == "nearest") {
    s.mode = Mode::kNearest;
  } else if (mode == (old ? "bicubic" : "cubic")) {
    s.mode = Mode::kCubic;
  } else if (mode != (old ? "bilinear" : "linear")) {
    throw Error(Code::kInvalidData, fmt::format("{}: mode \"{}\" is not known", op, mode));
  }
  const std::string_view padding = attributes.String("padding_mode", "zeros");
  if (padding == "border") {
    s.padding = Padding::kBorder;
  } else if (padding == "reflection") {
    s.padding = Padding::kReflection;
  } else if (padding != "zeros") {
    throw Error(Code::kInvalidData,
                fmt::format("{}: padding_mode \"{}\" is not known", op, padding));
  }
  s.align_corners = attributes.Int("align_corners", 0) != 0;
  return s;
}

void Infer(InferContext& c) {
  ReadSampling(c.schema().name, c.attrs(), c.schema().since);
  const auto& x = c.in(0).dims;
  const auto& grid = c.in(1).dims;
  if (!x && !grid) return c.SetOut(0, c.in(0).dtype, std::nullopt);
  const size_t rank = x ? x->size() : grid->size();
  if (rank < 3 || rank > static_cast<size_t>(kMaxRank) || (c.schema().since < 20 && rank != 4)) {
    c.Fail(fmt::format("data of rank {} is not served at this opset", rank));
  }
  Dims out(rank);
  if (x) {
    out[0] = (*x)[0];
    out[1] = (*x)[1];
    for (size_t i = 2; i < rank; ++i) {
      if ((*x)[i].Is(0)) c.Fail("data " + ToString(*x) + " has planes without elements");
    }
  }
  if (grid) {
    const Dim axes = grid->empty() ? Dim() : grid->back();
    if (grid->size() != rank || (axes.known() && !axes.Is(static_cast<int64_t>(rank) - 2))) {
      c.Fail(fmt::format("grid {} does not fit data of rank {}", ToString(*grid), rank),
             "it is [batch, out..., number of spatial axes]");
    }
    const Dim& batch = (*grid)[0];
    if (batch.known() && out[0].known() && !batch.Is(out[0].value()))
      c.Fail(fmt::format("grid {} and data differ in their batch", ToString(*grid)));
    if (!out[0].known()) out[0] = batch;
    for (size_t i = 2; i < rank; ++i) out[i] = (*grid)[i - 1];
  }
  c.SetOut(0, c.in(0).dtype, std::move(out));
}

// The place between the borders that `x` is the mirror image of.
double Reflect(double x, double low, double high) {
  const double range = high - low;
  if (!(range > 0)) return low;
  const double away = std::fmod(std::abs(x - low), 2 * range);
  return low + (away > range ? 2 * range - away : away);
}

// One axis at one place: up to four neighbours with their weights.
struct AxisTaps {
  int count = 1;
  std::array<int64_t, 4> index{};  // -1: outside, counts as 0
  std::array<double, 4> weight{1, 0, 0, 0};
};

int64_t TapIndex(const Sampling& s, int64_t i, int64_t length) {
  if (i >= 0 && i < length) return i;
  switch (s.padding) {
    case Padding::kZeros:
      return -1;
    case Padding::kBorder:
      return i < 0 ? 0 : length - 1;
    case Padding::kReflection:
      break;
  }
  const double low = s.align_corners ? 0 : -0.5;
  const double high = static_cast<double>(length) + (s.align_corners ? -1 : -0.5);
  return std::clamp<int64_t>(static_cast<int64_t>(Reflect(static_cast<double>(i), low, high)), 0,
                             length - 1);
}

void CubicWeights(double t, std::array<double, 4>& w) {
  constexpr double a = -0.75;
  const auto far = [](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  const auto near = [](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  w = {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

// `place` in -1 .. 1. G: the type in which the place is turned into an element, that of the grid,
// so that halves round as everywhere.
template <typename G>
AxisTaps TapsAt(const Sampling& s, G place, int64_t length) {
  const auto n = static_cast<G>(length);
  auto x =
      static_cast<double>(s.align_corners ? (place + 1) / 2 * (n - 1) : ((place + 1) * n - 1) / 2);
  if (s.mode == Mode::kNearest) x = std::nearbyint(x);
  const double low = s.align_corners ? 0 : -0.5;
  const double high = static_cast<double>(length) + (s.align_corners ? -1 : -0.5);
  if (std::isnan(x)) x = s.padding == Padding::kZeros ? -8 : 0;
  if (s.padding == Padding::kBorder) x = std::clamp(x, 0.0, static_cast<double>(length - 1));
  if (s.padding == Padding::kReflection && (x < low || x > high)) {
    x = std::isinf(x) ? 0 : Reflect(x, low, high);
  }
  x = std::clamp(x, -8.0, static_cast<double>(length) + 8);  // farther away is as outside
  AxisTaps taps;
  if (s.mode == Mode::kNearest) {
    taps.index[0] = TapIndex(s, static_cast<int64_t>(x), length);
    return taps;
  }
  const double floor = std::floor(x);
  const auto first = static_cast<int64_t>(floor);
  if (s.mode == Mode::kLinear) {
    taps.count = 2;
    taps.weight = {1 - (x - floor), x - floor, 0, 0};
    taps.index = {TapIndex(s, first, length), TapIndex(s, first + 1, length), 0, 0};
    return taps;
  }
  taps.count = 4;
  CubicWeights(x - floor, taps.weight);
  for (int i = 0; i < 4; ++i)
    taps.index[static_cast<size_t>(i)] = TapIndex(s, first - 1 + i, length);
  return taps;
}

using PlaceTaps = std::array<AxisTaps, kMaxAxes>;

template <typename T>
double Interpolate(const T* plane, const Shape& x, const PlaceTaps& taps, int axes) {
  int64_t count = 1;
  for (int i = 0; i < axes; ++i) count *= taps[static_cast<size_t>(i)].count;
  double sum = 0;
  for (int64_t k = 0; k < count; ++k) {
    int64_t rest = k, offset = 0, stride = 1;
    double weight = 1;
    bool inside = true;
    for (int i = axes - 1; i >= 0 && inside; --i) {
      const AxisTaps& t = taps[static_cast<size_t>(i)];
      const auto tap = static_cast<size_t>(rest % t.count);
      rest /= t.count;
      inside = t.index[tap] >= 0;
      offset += t.index[tap] * stride;
      stride *= x[i + 2];
      weight *= t.weight[tap];
    }
    if (inside) sum += weight * static_cast<double>(plane[offset]);
  }
  return sum;
}

// A single tap is copied, so that wide integers stay exact.
template <typename T>
T Nearest(const T* plane, const Shape& x, const PlaceTaps& taps, int axes) {
  int64_t offset = 0;
  for (int i = 0; i < axes; ++i) {
    const int64_t index = taps[static_cast<size_t>(i)].index[0];
    if (index < 0) return T{};
    offset = offset * x[i + 2] + index;
  }
  return plane[offset];
}

template <typename T>
T Rounded(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (std::is_integral_v<T>) {
    return FloatToInt<T>(value);
  } else {
    return static_cast<T>(value);
  }
}

template <typename T, typename G>
void RunTyped(const OpCall& call, const Sampling& s) {
  const Shape& shape = call.x(0).shape();
  const int axes = shape.rank() - 2;
  const int64_t plane = shape.Product(2, shape.rank());
  const int64_t places = call.y(0).shape().Product(2, shape.rank());
  const T* x = call.x(0).template data<T>();
  T* y = call.y(0).template data<T>();
  ParallelFor(shape[0] * places, 64, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      PlaceTaps taps;
      for (int i = 0; i < axes; ++i) {
        const auto place = static_cast<G>(ElementAsDouble(call.x(1), (at + 1) * axes - 1 - i));
        taps[static_cast<size_t>(i)] = TapsAt(s, place, shape[i + 2]);
      }
      const int64_t batch = at / places, p = at % places;
      for (int64_t channel = 0; channel < shape[1]; ++channel) {
        const T* from = x + (batch * shape[1] + channel) * plane;
        y[(batch * shape[1] + channel) * places + p] =
            s.mode == Mode::kNearest ? Nearest(from, shape, taps, axes)
                                     : Rounded<T>(Interpolate(from, shape, taps, axes));
      }
    }
  });
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Sampling s = ReadSampling(call.schema->name, call.attrs(), call.schema->since);
  if (call.y(0).elements() == 0) return;
  DispatchReference<kAllTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    if (call.x(1).dtype() == DType::kDouble) {
      RunTyped<T, double>(call, s);
    } else {
      RunTyped<T, float>(call, s);
    }
  });
}

Cost SampleCost(const OpCall& call) {
  const Sampling s = ReadSampling(call.schema->name, call.attrs(), call.schema->since);
  Cost cost = DefaultCost(call);
  const double taps = s.mode == Mode::kNearest ? 1 : (s.mode == Mode::kLinear ? 2 : 4);
  cost.flops *= 2 * std::pow(taps, call.x(0).shape().rank() - 2);
  return cost;
}

OpSchema Schema(int since, int until, std::vector<std::string_view> samples) {
  const TypeMask without = since < 22 ? kBFloat16Type : 0;
  return {.name = "GridSample",
          .since = since,
          .until = until,
          .inputs = {{.name = "X", .types = kAllTypes & ~without, .group = 1},
                     {.name = "grid", .types = kFloatTypes & ~without}},
          .outputs = {{.name = "Y", .types = kAllTypes & ~without, .group = 1}},
          .attributes = {{.name = "align_corners",
                          .type = AttributeType::kInt,
                          .note = "1: -1 and 1 are centres, else edges"},
                         {.name = "mode",
                          .type = AttributeType::kString,
                          .note = "linear (default), nearest, cubic; before 20 bilinear, bicubic"},
                         {.name = "padding_mode",
                          .type = AttributeType::kString,
                          .note = "zeros (default), border, reflection"}},
          .infer = Infer,
          .cost = SampleCost,
          .samples = std::move(samples),
          .doc = "elements at places that a grid names"};
}

WHIMBREL_REGISTER(Schema(16, 20,
                         {"f32:1x2x5x7 f32:1x3x4x2@-1.2..1.2",
                          "f32:1x2x5x7 f32:1x3x4x2@-1.2..1.2 mode=bicubic padding_mode=border"}));
WHIMBREL_REGISTER(Schema(20, 22,
                         {"f32:1x2x3x4x5 f32:1x2x3x4x3@-1.5..1.5 padding_mode=reflection",
                          "f32:1x2x5x7 f32:1x3x4x2@-1.2..1.2 mode=nearest align_corners=1"}));
WHIMBREL_REGISTER(
    Schema(22, INT_MAX,
           {"f32:1x16x40x40 f32:1x20x20x2@-1.1..1.1", "f32:1x1x1x1 f32:1x1x1x2",
            "f32:2x3x5x7 f32:2x3x4x2@-3..3 mode=cubic padding_mode=reflection align_corners=1",
            "f32:2x3x9 f32:2x5x1@-1.5..1.5 padding_mode=border", "f32:0x3x5x7 f32:0x3x4x2",
            "f32:1x3x5x7 f32:1x0x4x2", "f32:1x2x5x7 f32:1x3x4x2 nan=1",
            "f32:1x1x1x3 f32:1x2x2x2@-9..9 padding_mode=reflection align_corners=1",
            "u8:1x2x5x7@0..255 f32:1x3x4x2 mode=cubic", "i64:1x2x5x7 f64:1x3x4x2 mode=nearest",
            "bool:1x2x5x7 f32:1x3x4x2 mode=nearest padding_mode=border",
            "f64:1x2x5x7 f64:1x3x4x2 align_corners=1", "f16:1x2x5x7 f16:1x3x4x2",
            "bf16:1x2x5x7 bf16:1x3x4x2 mode=cubic"}));
WHIMBREL_REGISTER(Kernel{.op = "GridSample", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
