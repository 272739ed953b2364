// QLinearSoftmax: y = saturate(round(softmax(xs (x - xz)) / ys) + yz).
//
// in   X  i8 | u8
//      X_scale, x_zero_point, y_scale, y_zero_point  one element each; x_zero_point is optional
// attr axis   int, default -1
//      opset  int, of the Softmax that is meant: below 13 all dims from axis on are one row
// out  Y  like X
// Source: ONNX Runtime's operator com.microsoft.QLinearSoftmax (1).

#include <fmt/format.h>

#include "whimbrel/kernels/ops/quantized.h"
#include "whimbrel/kernels/ops/softmax_common.h"

namespace whimbrel {
namespace {

enum Input : size_t { kX, kXScale, kXZero, kYScale, kYZero };

void Infer(InferContext& c) {
  for (size_t i : {size_t{kXScale}, size_t{kXZero}, size_t{kYScale}, size_t{kYZero}})
    CheckOneElement(c, i);
  const int64_t opset = c.attrs().Int("opset", 0);
  if (opset < 1) c.Fail(fmt::format("opset is {}", opset));
  if (c.in(kX).dims) NormalizeAxis(c.attrs().Int("axis", -1), c.in(kX).rank(), c.schema().name);
  InferLikeFirst(c);
}

SoftmaxRows RowsOf(const OpCall& call) {
  const Shape& x = call.x(kX).shape();
  const int axis = NormalizeAxis(call.attrs().Int("axis", -1), x.rank(), call.schema->name);
  if (call.attrs().Int("opset", 13) < 13) return {x.Product(0, axis), x.Product(axis, x.rank()), 1};
  const int64_t inner = x.Product(axis + 1, x.rank());
  return {x.Product(0, axis) * inner, x[axis], inner};
}

Cost SoftmaxCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops *= 7;
  return cost;
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const double x_scale = OneElement(call, kXScale), y_scale = OneElement(call, kYScale);
  const auto y_zero = static_cast<int64_t>(OneElement(call, kYZero));
  const SoftmaxRows rows = RowsOf(call);
  const int64_t inner = rows.inner, length = rows.length;
  DispatchReference<kQuantized8>(call, call.x(kX).dtype(), [&]<typename Q>() {
    const Q* x = call.x(kX).data<Q>();
    Q* y = call.y(0).data<Q>();
    ParallelFor(rows.rows, 4096 / (length + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t base = row / inner * length * inner + row % inner;
        // the zero point cancels in the differences
        Q highest = std::numeric_limits<Q>::min();
        for (int64_t i = 0; i < length; ++i) highest = std::max(highest, x[base + i * inner]);
        const auto weight = [&](int64_t i) {
          return std::exp(x_scale * (x[base + i * inner] - highest));
        };
        double sum = 0;
        for (int64_t i = 0; i < length; ++i) sum += weight(i);
        for (int64_t i = 0; i < length; ++i)
          y[base + i * inner] = Quantize<Q>(weight(i) / sum / y_scale, y_zero);
      }
    });
  });
}

WHIMBREL_REGISTER(OpSchema{
    .name = "QLinearSoftmax",
    .domain = "com.microsoft",
    .inputs = {{.name = "X", .types = kQuantized8, .group = 1},
               {.name = "X_scale", .types = TypeBit(DType::kFloat)},
               {.name = "x_zero_point", .types = kQuantized8, .optional = true, .group = 1},
               {.name = "y_scale", .types = TypeBit(DType::kFloat)},
               {.name = "y_zero_point", .types = kQuantized8, .group = 1}},
    .outputs = {{.name = "Y", .types = kQuantized8, .group = 1}},
    .attributes = {{.name = "axis", .type = AttributeType::kInt, .note = "default -1"},
                   {.name = "opset",
                    .type = AttributeType::kInt,
                    .required = true,
                    .note = "of the Softmax that is meant"}},
    .infer = Infer,
    .cost = SoftmaxCost,
    .samples = {"u8:3x16@0..255 f32:={0.1} u8:={128} f32:={0.00390625} u8:={0} opset=13",
                "i8:1x4={127,-128,-128,-128} f32:={0.5} i8:={0} f32:={0.00390625} i8:={-128} "
                "opset=13",
                "u8:2x3x4@0..255 f32:={0.1} u8:={128} f32:={0.00390625} u8:={0} opset=11 axis=1",
                "u8:2x3x4@0..255 f32:={0.1} - f32:={0.00390625} u8:={0} opset=13 axis=1",
                "u8:1 f32:={0.1} u8:={1} f32:={0.00390625} u8:={0} opset=13",
                "u8:0x4 f32:={0.1} u8:={1} f32:={0.00390625} u8:={0} opset=13",
                "i8:7x1000@-128..127 f32:={0.1} i8:={3} f32:={0.00390625} i8:={-128} opset=13"},
    .doc = "softmax of 8 bit numbers"});
WHIMBREL_REGISTER(Kernel{
    .op = "QLinearSoftmax", .domain = "com.microsoft", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
