// DequantizeLinear: y = (x - zero point) * scale.
//
// in   x             i8 | u8 | i32, from 21 also i16 | u16
//      x_scale       one, [length of axis], or like x with one for each block of the axis (from
//      21);
//                    f32, from 19 also f16 | bf16
//      x_zero_point  the shape of x_scale, type of x; optional
// attr axis          int, default 1; block_size  elements that share a scale (from 21)
//      output_dtype  type of y (from 23); default that of x_scale
// out  y             like x
// Source: ONNX operator DequantizeLinear (10, 13, 19, 21, 23).

#include <fmt/format.h>

#include "whimbrel/kernels/ops/quantized.h"

namespace whimbrel {
namespace {

constexpr TypeMask kNarrowFloats =
    TypeBit(DType::kFloat) | TypeBit(DType::kFloat16) | kBFloat16Type;
constexpr TypeMask kDataTypes = kQuantized8 | kQuantized16 | TypeBit(DType::kInt32);

void Infer(InferContext& c) {
  InferScales(c);
  const int64_t wanted = c.attrs().Int("output_dtype", 0);
  if (wanted != 0 && wanted != 1 && wanted != 10 && wanted != 16) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: output_dtype {} is none of float, float16 and bfloat16",
                            c.schema().name, wanted));
  }
  c.SetOut(0, wanted == 0 ? c.in(1).dtype : static_cast<DType>(wanted), c.in(0).dims);
}

template <typename T, typename R>
void RunTyped(const OpCall& call) {
  const ScaleLayout layout = ScaleLayoutOf(call);
  const T* x = call.x(0).template data<T>();
  const Tensor& scales = call.x(1);
  const T* zeros = call.has(2) ? call.x(2).template data<T>() : nullptr;
  R* y = call.y(0).template data<R>();
  const auto dequantize = [&](int64_t begin, int64_t end, int64_t scale_at, int64_t step) {
    // the scale in the type of the product
    const auto scale_of = [&] {
      return static_cast<double>(static_cast<R>(ElementAsDouble(scales, scale_at)));
    };
    double scale = scale_of();
    for (int64_t i = begin; i < end; ++i, scale_at += step) {
      if (step != 0) scale = scale_of();
      const double zero = zeros == nullptr ? 0 : static_cast<double>(zeros[scale_at]);
      y[i] = static_cast<R>((static_cast<double>(x[i]) - zero) * scale);
    }
  };
  const int64_t count = call.x(0).elements();
  if (count == 0) return;
  const bool one_scale = layout.inner == count && !layout.per_axis && layout.step == 0;
  if (one_scale) {
    ParallelFor(count, 16384, [&](int64_t begin, int64_t end) { dequantize(begin, end, 0, 0); });
    return;
  }
  ParallelFor(count / layout.inner, 16384 / layout.inner + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      dequantize(row * layout.inner, (row + 1) * layout.inner, layout.Of(row), layout.step);
    }
  });
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  DispatchReference<kDataTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    DispatchReference<kNarrowFloats>(call, call.y(0).dtype(),
                                     [&]<typename R>() { RunTyped<T, R>(call); });
  });
}

OpSchema Schema(int since, int until, std::vector<std::string_view> samples) {
  const TypeMask in = since < 21 ? kDataTypes & ~kQuantized16 : kDataTypes;
  const TypeMask out = since < 19 ? TypeBit(DType::kFloat) : kNarrowFloats;
  OpSchema s{.name = "DequantizeLinear",
             .since = since,
             .until = until,
             .inputs = {{.name = "x", .types = in, .group = 1},
                        {.name = "x_scale", .types = out},
                        {.name = "x_zero_point", .types = in, .optional = true, .group = 1}},
             .outputs = {{.name = "y", .types = out}},
             .infer = Infer,
             .samples = std::move(samples),
             .doc = "8, 16 or 32 bit integers to float"};
  const auto add = [&](int from, std::string_view name, std::string_view note) {
    if (since >= from)
      s.attributes.push_back({.name = name, .type = AttributeType::kInt, .note = note});
  };
  add(13, "axis", "default 1; of the scales");
  add(21, "block_size", "elements that share a scale; 0 (default): no blocks");
  add(23, "output_dtype", "type of y; default that of x_scale");
  return s;
}

WHIMBREL_REGISTER(Schema(10, 13, {"u8:3x4@0..255 f32:={0.02} u8:={128}", "i32:5 f32:={0.5}"}));
WHIMBREL_REGISTER(Schema(13, 19,
                         {"i8:2x3x5@-128..127 f32:3@0.01..0.1 i8:3@-5..5",
                          "i8:4x3@-128..127 f32:4@0.01..0.1 i8:4@-5..5 axis=0"}));
WHIMBREL_REGISTER(Schema(19, 21, {"u8:3x4@0..255 f16:={0.02} u8:={128}", "i8:5 bf16:={0.5}"}));
WHIMBREL_REGISTER(Schema(21, 23,
                         {"u8:4x6 f32:4x3@0.01..0.1 u8:4x3 axis=1 block_size=2",
                          "i16:9@-32768..32767 f32:={2} i16:={-7}"}));
WHIMBREL_REGISTER(Schema(23, INT_MAX,
                         {"u8:1x64x40x40@0..255 f32:={0.02} u8:={128}", "i8:1 f32:={0.1} i8:={0}",
                          "u8: f32:={0.1} u8:={3}", "u8:0x8 f32:={0.1} u8:={0}",
                          "i8:7x17@-128..127 f32:17@0.01..0.1 i8:17@-5..5 axis=-1",
                          "i32:3={2147483647,-2147483648,5} f32:={0.001}",
                          "i8:5x3@-128..127 f16:2x3 axis=0 block_size=3",
                          "u16:7x3@0..65535 bf16:={0.0625} u16:={1000}",
                          "u8:5 f32:={0.001} output_dtype=10", "u8:3 f32:3 nan=1"}));
WHIMBREL_REGISTER(Kernel{.op = "DequantizeLinear", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
