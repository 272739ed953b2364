// QuantizeLinear: y = saturate(round(x / scale) + zero point), half to even.
//
// in   x             f32 | i32, from 19 also f16 | bf16
//      y_scale       one, [length of axis], or like x with one for each block of the axis (from
//      21);
//                    f32, from 19 the type of x, from 23 any of x's types
//      y_zero_point  the shape of y_scale, i8 | u8, from 21 also i16 | u16; optional
// attr axis          int, default 1; block_size  elements that share a scale (from 21)
//      output_dtype  type of y without a zero point (from 21); default u8
//      precision     type in which the quotient is rounded (from 23); default that of y_scale
//      saturate      for the 8 bit float types only
// out  y             like x, type of the zero point
// Source: ONNX operator QuantizeLinear (10, 13, 19, 21, 23). NaN becomes the lowest number, as in
// ONNX Runtime.

#include <fmt/format.h>

#include "whimbrel/kernels/ops/quantized.h"

namespace whimbrel {
namespace {

constexpr TypeMask kInt32Type = TypeBit(DType::kInt32);
constexpr TypeMask kFloat32Type = TypeBit(DType::kFloat);
constexpr TypeMask kNarrowFloats = kFloat32Type | TypeBit(DType::kFloat16) | kBFloat16Type;

DType OutputType(const InferContext& c, TypeMask types) {
  const int64_t wanted = c.attrs().Int("output_dtype", 0);
  if (wanted != 0 &&
      (wanted < 0 || wanted > 16 || (TypeBit(static_cast<DType>(wanted)) & types) == 0)) {
    throw Error(
        Code::kUnsupported,
        fmt::format("{}: output_dtype {} is no 8 or 16 bit integer type", c.schema().name, wanted));
  }
  if (c.has(2) && c.in(2).dtype != DType::kUndefined) {
    if (wanted != 0 && static_cast<DType>(wanted) != c.in(2).dtype) {
      c.Fail(fmt::format("output_dtype is {}, the zero point {}",
                         DTypeName(static_cast<DType>(wanted)), DTypeName(c.in(2).dtype)));
    }
    return c.in(2).dtype;
  }
  return wanted == 0 ? DType::kUint8 : static_cast<DType>(wanted);
}

void CheckPrecision(const InferContext& c) {
  const int64_t type = c.attrs().Int("precision", 0);
  const bool known = type == 0 || type == 1 || type == 10 || type == 11 || type == 16;
  if (!known) c.Fail(fmt::format("precision {} is no float type", type));
}

void Infer(InferContext& c) {
  InferScales(c);
  CheckPrecision(c);
  c.SetOut(0, OutputType(c, c.schema().outputs[0].types), c.in(0).dims);
}

// The quotient in the precision that the call asks for. It is computed in double, whose own
// rounding does not show in any of them.
template <typename P>
double Quotient(double x, double scale) {
  return static_cast<double>(static_cast<P>(static_cast<double>(static_cast<P>(x)) /
                                            static_cast<double>(static_cast<P>(scale))));
}

template <typename T, typename Q, typename P>
void RunTyped(const OpCall& call) {
  const ScaleLayout layout = ScaleLayoutOf(call);
  const T* x = call.x(0).template data<T>();
  const Tensor& scales = call.x(1);
  const Q* zeros = call.has(2) ? call.x(2).template data<Q>() : nullptr;
  Q* y = call.y(0).template data<Q>();
  const auto quantize = [&](int64_t begin, int64_t end, int64_t scale_at, int64_t step) {
    double scale = ElementAsDouble(scales, scale_at);
    for (int64_t i = begin; i < end; ++i, scale_at += step) {
      if (step != 0) scale = ElementAsDouble(scales, scale_at);
      y[i] = Quantize<Q>(Quotient<P>(static_cast<double>(x[i]), scale),
                         zeros == nullptr ? 0 : zeros[scale_at]);
    }
  };
  const int64_t count = call.x(0).elements();
  if (count == 0) return;
  const bool one_scale = layout.inner == count && !layout.per_axis && layout.step == 0;
  if (one_scale) {
    ParallelFor(count, 16384, [&](int64_t begin, int64_t end) { quantize(begin, end, 0, 0); });
    return;
  }
  ParallelFor(count / layout.inner, 16384 / layout.inner + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      quantize(row * layout.inner, (row + 1) * layout.inner, layout.Of(row), layout.step);
    }
  });
}

// double when the quotient is not to be rounded: i32 divided by i32
template <typename T, typename Q>
void RunPrecision(const OpCall& call) {
  const auto asked = static_cast<DType>(call.attrs().Int("precision", 0));
  switch (asked == DType::kUndefined ? call.x(1).dtype() : asked) {
    case DType::kFloat:
      return RunTyped<T, Q, float>(call);
    case DType::kFloat16:
      return RunTyped<T, Q, Half>(call);
    case DType::kBFloat16:
      return RunTyped<T, Q, BFloat16>(call);
    default:
      return RunTyped<T, Q, double>(call);
  }
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  DispatchReference<kNarrowFloats | kInt32Type>(call, call.x(0).dtype(), [&]<typename T>() {
    DispatchReference<kQuantized8 | kQuantized16>(call, call.y(0).dtype(),
                                                  [&]<typename Q>() { RunPrecision<T, Q>(call); });
  });
}

OpSchema Schema(int since, int until, std::vector<std::string_view> samples) {
  const TypeMask in = since < 19 ? kFloat32Type | kInt32Type : kNarrowFloats | kInt32Type;
  const TypeMask out = since < 21 ? kQuantized8 : kQuantized8 | kQuantized16;
  OpSchema s{.name = "QuantizeLinear",
             .since = since,
             .until = until,
             .inputs = {{.name = "x", .types = in, .group = since >= 19 && since < 23 ? 1 : 0},
                        {.name = "y_scale",
                         .types = since < 19 ? kFloat32Type : in,
                         .group = since >= 19 && since < 23 ? 1 : 0},
                        {.name = "y_zero_point", .types = out, .optional = true, .group = 2}},
             .outputs = {{.name = "y", .types = out, .group = 2}},
             .infer = Infer,
             .samples = std::move(samples),
             .doc = "float to 8 or 16 bit integers"};
  const auto add = [&](int from, std::string_view name, std::string_view note) {
    if (since >= from)
      s.attributes.push_back({.name = name, .type = AttributeType::kInt, .note = note});
  };
  add(13, "axis", "default 1; of the scales");
  add(19, "saturate", "for 8 bit floats only");
  add(21, "block_size", "elements that share a scale; 0 (default): no blocks");
  add(21, "output_dtype", "type of y without a zero point; default u8");
  add(23, "precision", "type of the quotient; default that of y_scale");
  return s;
}

WHIMBREL_REGISTER(Schema(10, 13, {"f32:3x4 f32:={0.02} u8:={128}", "f32:5 f32:={0.5}"}));
WHIMBREL_REGISTER(Schema(13, 19,
                         {"f32:2x3x5 f32:3@0.01..0.1 i8:3@-5..5",
                          "f32:8={-129,-128,-127,-126,126,127,128,129} f32:={1} i8:={0}",
                          "i32:4@-300..300 f32:={2} u8:={100}"}));
WHIMBREL_REGISTER(Schema(19, 21, {"f16:3x4 f16:={0.02} u8:={128}", "bf16:5 bf16:={0.5} i8:={0}"}));
WHIMBREL_REGISTER(Schema(21, 23,
                         {"f32:4x6 f32:4x3@0.01..0.1 u8:4x3 axis=1 block_size=2",
                          "f32:9@-60000..60000 f32:={2} i16:={0}"}));
WHIMBREL_REGISTER(Schema(
    23, INT_MAX,
    {"f32:1x64x40x40 f32:={0.02} u8:={128}", "f32:1 f32:={0.1} i8:={0}", "f32: f32:={0.1} u8:={3}",
     "f32:0x8 f32:={0.1} u8:={0}", "f32:7x17 f32:17@0.01..0.1 i8:17@-5..5 axis=-1",
     "f32:6={0.5,1.5,2.5,-0.5,-1.5,-2.5} f32:={1} i8:={0}", "f32:9 f32:={0.01} i8:={0} nan=1",
     "f16:3x5 f32:={0.02} u8:={128}", "f32:3x5 f32:={0.02} precision=10",
     "f32:5x3 f32:2x3@0.01..0.1 i16:2x3 axis=0 block_size=3", "f32:5 f32:={0.001} output_dtype=4",
     "bf16:7x3 bf16:={0.0625} u16:={1000}", "i32:7x3@-900..900 i32:={5} i8:={1}",
     "f32:4 f32:={0} u8:={0}"}));
WHIMBREL_REGISTER(Kernel{.op = "QuantizeLinear", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
