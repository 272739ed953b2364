// Pow: z = x ^ y, broadcast.
//
// in   X  f32 | f64 | f16 | bf16, from 12 also i32 | i64
//      Y  numeric; before 12 the type of X
// out  Z  broadcast of both, type of X
// Integers to whole powers are exact and wrap; other powers go through double and are cut as Cast
// does. Source: ONNX operator Pow (7, 12, 13, 15).

#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/float_to_int.h"

namespace whimbrel {
namespace {

template <typename T>
T WholePower(T base, uint64_t exponent) {
  T result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = WrapMul(result, base);
    base = WrapMul(base, base);
  }
  return result;
}

template <typename T, typename E>
T Power(T x, E y) {
  if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_integral_v<E>) {
      if (!IsNegative(y)) return WholePower(x, static_cast<uint64_t>(y));
    } else {
      // 2^63: every whole double below it is a uint64_t.
      if (y >= 0 && y < 9223372036854775808.0 && y == std::floor(y)) {
        return WholePower(x, static_cast<uint64_t>(y));
      }
    }
    return FloatToInt<T>(std::pow(static_cast<double>(x), static_cast<double>(y)));
  } else {
    return std::pow(x, static_cast<double>(y));
  }
}

constexpr TypeMask kBaseTypes = kFloatTypes | kIndexTypes;

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  DispatchReference<kBaseTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    DispatchReference<kNumericTypes>(call, call.x(1).dtype(), [&]<typename E>() {
      const T* x = call.x(0).data<T>();
      const E* e = call.x(1).data<E>();
      T* z = call.y(0).data<T>();
      const BroadcastWalk<2> walk(call.y(0).shape(), {&call.x(0).shape(), &call.x(1).shape()});
      ParallelFor(call.y(0).elements(), 4096, [&](int64_t begin, int64_t end) {
        walk.Run(begin, end, [&](int64_t i, const std::array<int64_t, 2>& at) {
          z[i] = Narrow<T>(Power(Widen(x[at[0]]), Widen(e[at[1]])));
        });
      });
    });
  });
}

// Both inputs are of one type before 12.
OpSchema Schema(int since, int until, TypeMask base, TypeMask exponent,
                std::vector<std::string_view> samples) {
  OpSchema schema;
  schema.name = "Pow";
  schema.since = since;
  schema.until = until;
  schema.inputs = {{.name = "X", .types = base, .group = 1},
                   {.name = "Y", .types = exponent, .group = since < 12 ? 1 : 2}};
  schema.outputs = {{.name = "Z", .types = base, .group = 1}};
  schema.infer = InferBroadcast;
  schema.samples = std::move(samples);
  return schema;
}

WHIMBREL_REGISTER(Schema(7, 12, kFloatTypesTo12, kFloatTypesTo12,
                         {"f32:3x4@0..3 f32:4", "f16:5@0..3 f16:1"}));
WHIMBREL_REGISTER(Schema(12, 13, kFloatTypesTo12 | kIndexTypes, kNumericTypesTo12,
                         {"f32:3x4 i32:4@0..3", "i32:5 f32:1={2}"}));
WHIMBREL_REGISTER(Schema(13, 15, kBaseTypes, kNumericTypesTo12,
                         {"bf16:3x4 f32:4={2,3,-1,0}", "i64:5 u8:1"}));
WHIMBREL_REGISTER(
    Schema(15, INT_MAX, kBaseTypes, kNumericTypes,
           {"f32:3x16@0..3 f32:3x16", "f32:2x3x5@0..3 f32:3x1", "f32:@0..3 f32:4", "f32:0x3 f32:3",
            "f32:1@0..3 f32:1", "f16:7x17@0..3 f16:17", "bf16:5x9@0..3 bf16:5x1",
            "f64:3x3@0..3 f64:1x3", "f32:1x64x40x40 f32:1={2}", "f32:8 f32:8 nan=1",
            "f32:6={-8,-2,0,0,-0,1} f32:6={0.33333334,3,-1,0,-3,nan}", "i32:2={2,3} f32:2={-1,2}",
            "i32:6={2,1,-1,-1,3,10} i64:6={-1,-5,-3,-4,50,9}",
            "i64:3={3037000499,-2,7} f64:3={2,63,0.5}", "i64:4 i64:4@0..3", "f32:5 i64:5@-3..3",
            "f16:5 i8:5@-3..3", "f32:3 bf16:3={2,3,4}", "i32:3 u64:3@0..3"}));
WHIMBREL_REGISTER(Kernel{.op = "Pow", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
