// NonZero: y[:, n] = the place of the n-th element that is not 0, in row-major order.
//
// in   X  any type
// out  Y  i64 [rank, count]; a scalar gives [0, count]
// NaN is not 0. Source: ONNX operator NonZero (9, 13).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  const auto& in = c.in(0).dims;
  c.SetOut(0, DType::kInt64, Dims{in ? Dim(static_cast<int64_t>(in->size())) : Dim(), Dim()});
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& shape = call.x(0).shape();
  const int64_t elements = shape.elements();
  DispatchReference<kAllTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    int64_t count = 0;
    for (int64_t i = 0; i < elements; ++i) count += Widen(x[i]) != 0 ? 1 : 0;
    call.ResizeOutput(0, DType::kInt64, Shape{shape.rank(), count});
    int64_t* y = call.y(0).data<int64_t>();
    int64_t n = 0;
    for (int64_t i = 0; i < elements && n < count; ++i) {
      if (Widen(x[i]) == 0) continue;
      int64_t rest = i;
      for (int d = shape.rank() - 1; d >= 0; --d) {
        y[d * count + n] = rest % shape[d];
        rest /= shape[d];
      }
      ++n;
    }
  });
}

// Each element is compared once; the output is at most rank indices an element.
OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return OpSchema{
      .name = "NonZero",
      .since = since,
      .until = until,
      .inputs = {{.name = "X", .types = types}},
      .outputs = {{.name = "Y", .types = TypeBit(DType::kInt64)}},
      .infer = Infer,
      .samples = std::move(samples),
  };
}

WHIMBREL_REGISTER(Schema(9, 13, kAllTypesTo12, {"i32:3x4@0..1", "f16:5", "bool:3x3"}));
WHIMBREL_REGISTER(Schema(13, INT_MAX, kAllTypes,
                         {"i64:3x16@0..1", "f32:3={0,-0,1e-45}", "f32:1={0}", "f32:={2}",
                          "f32:={0}", "f32:0x8", "f16:7x17", "bf16:7x17", "f64:2x2x2",
                          "bool:2x3x4x5", "u8:9@0..1", "i8:9@-1..1", "u64:9@0..1", "f32:8 nan=1",
                          "i32:1x64x40x40@0..1"}));
WHIMBREL_REGISTER(Kernel{.op = "NonZero", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
