// QLinearAdd: c = saturate(round((as (a - az) + bs (b - bz)) / cs) + cz), broadcast.
//
// in   A, B  i8 | u8, one type
//      A_scale, A_zero_point, B_scale, B_zero_point, C_scale, C_zero_point  one element each; zero
//      points are optional and have the type of A
// out  C     type of A
// Source: ONNX Runtime's operator com.microsoft.QLinearAdd (1). The sum is exact here; ONNX Runtime
// rounds as / cs and bs / cs to float first and may be one off at halves.

#include "whimbrel/kernels/ops/quantized.h"

namespace whimbrel {
namespace {

enum Input : size_t { kA, kAScale, kAZero, kB, kBScale, kBZero, kCScale, kCZero };

void Infer(InferContext& c) {
  for (size_t i : {size_t{kAScale}, size_t{kAZero}, size_t{kBScale}, size_t{kBZero},
                   size_t{kCScale}, size_t{kCZero}}) {
    CheckOneElement(c, i);
  }
  std::optional<Dims> out;
  if (c.in(kA).dims && c.in(kB).dims) {
    out = BroadcastDims(*c.in(kA).dims, *c.in(kB).dims);
    if (!out) {
      c.Fail("A " + ToString(*c.in(kA).dims) + " and B " + ToString(*c.in(kB).dims) +
                 " do not broadcast",
             "dimensions must be equal or 1, aligned at the right");
    }
  }
  c.SetOut(0, c.in(kA).dtype, std::move(out));
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const double a_scale = OneElement(call, kAScale), b_scale = OneElement(call, kBScale);
  const double a_zero = OneElement(call, kAZero), b_zero = OneElement(call, kBZero);
  const double c_scale = OneElement(call, kCScale);
  const auto c_zero = static_cast<int64_t>(OneElement(call, kCZero));
  DispatchReference<kQuantized8>(call, call.x(kA).dtype(), [&]<typename Q>() {
    const Q* a = call.x(kA).data<Q>();
    const Q* b = call.x(kB).data<Q>();
    Q* y = call.y(0).data<Q>();
    const BroadcastWalk<2> walk(call.y(0).shape(), {&call.x(kA).shape(), &call.x(kB).shape()});
    ParallelFor(call.y(0).elements(), 8192, [&](int64_t begin, int64_t end) {
      walk.Run(begin, end, [&](int64_t i, const std::array<int64_t, 2>& at) {
        const double sum = a_scale * (a[at[0]] - a_zero) + b_scale * (b[at[1]] - b_zero);
        y[i] = Quantize<Q>(sum / c_scale, c_zero);
      });
    });
  });
}

Formal Scale(std::string_view name) {
  return {.name = name, .types = TypeBit(DType::kFloat)};
}
Formal Zero(std::string_view name) {
  return {.name = name, .types = kQuantized8, .optional = true, .group = 1};
}

WHIMBREL_REGISTER(OpSchema{
    .name = "QLinearAdd",
    .domain = "com.microsoft",
    .inputs = {{.name = "A", .types = kQuantized8, .group = 1},
               Scale("A_scale"),
               Zero("A_zero_point"),
               {.name = "B", .types = kQuantized8, .group = 1},
               Scale("B_scale"),
               Zero("B_zero_point"),
               Scale("C_scale"),
               Zero("C_zero_point")},
    .outputs = {{.name = "C", .types = kQuantized8, .group = 1}},
    .infer = Infer,
    .samples = {"u8:3x16@0..255 f32:={0.02} u8:={128} u8:3x16@0..255 f32:={0.03} u8:={100} "
                "f32:={0.04} u8:={110}",
                "i8:2x3x5@-128..127 f32:={0.02} i8:={3} i8:5@-128..127 f32:={0.03} i8:={-4} "
                "f32:={0.04} i8:={0}",
                "u8:1 f32:={0.1} - u8:1 f32:={0.1} - f32:={0.1} -",
                "u8: f32:={0.1} u8:={1} u8:4 f32:={0.1} u8:={1} f32:={0.1} u8:={1}",
                "u8:0x3 f32:={0.1} u8:={1} u8:3 f32:={0.1} u8:={1} f32:={0.1} u8:={1}",
                "i8:3={-128,127,127} f32:={1} i8:={0} i8:3={-128,127,1} f32:={1} i8:={0} f32:={1} "
                "i8:={0}",
                "u8:1x64x40x40@0..255 f32:={0.02} u8:={128} u8:64x1x1@0..255 f32:={0.03} u8:={100} "
                "f32:={0.04} u8:={110}"},
    .doc = "sum of 8 bit numbers, requantised"});
WHIMBREL_REGISTER(Kernel{
    .op = "QLinearAdd", .domain = "com.microsoft", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
