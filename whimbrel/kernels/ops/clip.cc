// Clip: y = min(max(x, low), high); NaN stays NaN, and high wins when the bounds cross.
//
// in   input     float types, from 12 numeric
//      min, max  scalars of the same type, optional (from 11)
// attr min, max  float (before 11)
// out  output    like input
// A bound left out is the lowest or highest finite value of the type, so that infinity becomes
// finite. Source: ONNX operator Clip (6, 11, 12, 13).

#include <limits>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void InferAttributes(InferContext& c) {
  InferLikeFirst(c);
}

void InferInputs(InferContext& c) {
  for (size_t i = 1; i <= 2; ++i) {
    if (!c.has(i) || !c.in(i).dims) continue;
    const Dims& dims = *c.in(i).dims;
    // Exporters also write a bound as [1]; ONNX Runtime takes that too.
    const Dim count = ProductOf(dims, 0, dims.size());
    if (dims.size() > 1 || (count.known() && count.value() != 1)) {
      c.Fail(std::string(i == 1 ? "min" : "max") + " must be a scalar, is " + ToString(dims));
    }
  }
  InferLikeFirst(c);
}

// The range of finite values in the type that references compute in.
template <typename T>
struct FiniteRange {
  static constexpr WideOf<T> low = std::numeric_limits<T>::lowest();
  static constexpr WideOf<T> high = std::numeric_limits<T>::max();
};
template <>
struct FiniteRange<Half> {
  static constexpr double low = -65504, high = 65504;
};
template <>
struct FiniteRange<BFloat16> {
  static constexpr double low = -0x1.FEp127, high = 0x1.FEp127;
};

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  DispatchReference<kNumericTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    using W = WideOf<T>;
    W low = FiniteRange<T>::low;
    W high = FiniteRange<T>::high;
    if constexpr (std::is_floating_point_v<W>) {
      if (call.schema->since < 11) {
        low = call.attrs().Float("min", std::numeric_limits<float>::lowest());
        high = call.attrs().Float("max", std::numeric_limits<float>::max());
      }
    }
    if (call.has(1)) low = Widen(*call.x(1).data<T>());
    if (call.has(2)) high = Widen(*call.x(2).data<T>());
    const T* x = call.x(0).data<T>();
    T* y = call.y(0).data<T>();
    ParallelFor(call.y(0).elements(), 16384, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = Narrow<T>(Clamp(Widen(x[i]), low, high));
    });
  });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema schema;
  schema.name = "Clip";
  schema.since = since;
  schema.until = until;
  schema.inputs = {{.name = "input", .types = types, .group = 1}};
  if (since >= 11) {
    schema.inputs.push_back({.name = "min", .types = types, .optional = true, .group = 1});
    schema.inputs.push_back({.name = "max", .types = types, .optional = true, .group = 1});
  } else {
    schema.attributes = {{"min", AttributeType::kFloat, false, "default: lowest float"},
                         {"max", AttributeType::kFloat, false, "default: highest float"}};
  }
  schema.outputs = {{.name = "output", .types = types, .group = 1}};
  schema.infer = since >= 11 ? InferInputs : InferAttributes;
  schema.samples = std::move(samples);
  return schema;
}

WHIMBREL_REGISTER(Schema(6, 11, kFloatTypesTo12,
                         {"f32:3x16 min=0 max=1", "f16:5 min=-0.5", "f64:4 max=0.25", "f32:8 nan=1",
                          "f32:3x5 min=1 max=-1"}));
WHIMBREL_REGISTER(Schema(11, 12, kFloatTypesTo12,
                         {"f32:3x4 f32:={0} f32:={1}", "f32:5 - f32:={0.5}", "f16:5 f16:={0}"}));
WHIMBREL_REGISTER(Schema(12, 13, kNumericTypesTo12,
                         {"f32:3x4 f32:={0} f32:={1}", "i32:5 i32:={3}", "u8:9 - u8:={5}"}));
WHIMBREL_REGISTER(Schema(13, INT_MAX, kNumericTypes,
                         {"f32:3x16 f32:={-1} f32:={1}",
                          "f32:1 f32:={0} f32:={6}",
                          "f32:={9} f32:={0} f32:={6}",
                          "f32:0x8 f32:={0}",
                          "f16:7x17 f16:={-0.5} f16:={0.5}",
                          "bf16:7x17 bf16:={-0.5} bf16:={0.5}",
                          "f64:3x5 f64:={0}",
                          "f32:9",
                          "f32:5 - f32:={0.5}",
                          "f32:5 f32:1={-1} f32:1={1}",
                          "i32:9 i32:={2} i32:={5}",
                          "i64:9 i64:={2} i64:={5}",
                          "u8:9 u8:={2} u8:={5}",
                          "i8:9@-128..127 i8:={-5} i8:={5}",
                          "u64:9 u64:={3}",
                          "i8:3={1,5,9} i8:={4} i8:={2}",
                          "f32:1x64x40x40 f32:={0} f32:={6}",
                          "f32:8 f32:={0} f32:={6} nan=1",
                          "f32:4={inf,-inf,nan,-0}",
                          "f16:3={inf,-inf,nan}",
                          "bf16:3={inf,-inf,nan}",
                          "f32:3={1,5,nan} f32:={4} f32:={2}",
                          "f32:3={1,5,nan} f32:={nan}",
                          "f32:6 f32: f32:"}));
WHIMBREL_REGISTER(Kernel{.op = "Clip", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
