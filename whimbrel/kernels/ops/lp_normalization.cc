// LpNormalization: y = x / (sum over the axis of |x|^p)^(1/p); 0 where that is 0.
//
// in   input   f32 | f64 | f16, from opset 22 also bf16
// attr axis    int, default -1; p  1 or 2 (default)
// out  output  like input
// Source: ONNX operator LpNormalization (1, 22).

#include "whimbrel/kernels/ops/norm_common.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  const int64_t p = c.attrs().Int("p", 2);
  if (p != 1 && p != 2) c.Fail("p is 1 or 2, is " + std::to_string(p));
  if (c.in(0).dims) NormalizeAxis(c.attrs().Int("axis", -1), c.in(0).rank(), c.schema().name);
  InferLikeFirst(c);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& shape = call.x(0).shape();
  const int axis = NormalizeAxis(call.attrs().Int("axis", -1), shape.rank(), call.schema->name);
  const int64_t length = shape[axis], inner = shape.Product(axis + 1, shape.rank());
  const bool absolute = call.attrs().Int("p", 2) == 1;
  if (call.x(0).elements() == 0) return;
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    T* y = call.y(0).data<T>();
    ParallelFor(call.x(0).elements() / length, 8192 / length + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t base = row / inner * length * inner + row % inner;
        double sum = 0;
        for (int64_t i = 0; i < length; ++i) {
          const double v = Widen(x[base + i * inner]);
          sum += absolute ? std::abs(v) : v * v;
        }
        const double norm = absolute ? sum : std::sqrt(sum);
        for (int64_t i = 0; i < length; ++i) {
          const int64_t at = base + i * inner;
          y[at] = norm == 0 ? T{} : Narrow<T>(Widen(x[at]) / norm);
        }
      }
    });
  });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema s = MakeSchema(
      {.name = "LpNormalization",
       .since = since,
       .until = until,
       .types = types,
       .inputs = {"input"},
       .output = "output",
       .attributes = {{.name = "axis", .type = AttributeType::kInt, .note = "default -1"},
                      {.name = "p", .type = AttributeType::kInt, .note = "1 or 2 (default)"}},
       .infer = Infer,
       .cost = NormCost,
       .samples = std::move(samples)});
  s.doc = "unit length along an axis";
  return s;
}

WHIMBREL_REGISTER(Schema(1, 22, kFloatTypesTo12,
                         {"f32:3x16", "f32:1 p=1", "f32:2x3x5 axis=1", "f32:2x3x5 axis=-3 p=1",
                          "f32:0x4", "f32:2x3={0,0,0,3,0,-4}", "f32:9 nan=1", "f64:3x5 axis=0",
                          "f16:3x5", "f16:2={60000,60000}"}));
WHIMBREL_REGISTER(Schema(22, INT_MAX, kFloatTypes, {"f32:3x5", "bf16:3x5 p=1"}));
WHIMBREL_REGISTER(Kernel{.op = "LpNormalization", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
