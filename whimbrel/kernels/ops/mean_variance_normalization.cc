// MeanVarianceNormalization: y = (x - mean) / (sqrt(variance) + 1e-9), moments over the axes.
//
// in   X     f32 | f64 | f16, from opset 13 also bf16
// attr axes  ints, default 0, 2, 3
// out  Y     like X
// Source: ONNX operator MeanVarianceNormalization (9, 13).

#include "whimbrel/kernels/ops/axes.h"
#include "whimbrel/kernels/ops/norm_common.h"
#include "whimbrel/kernels/ops/reduce.h"

namespace whimbrel {
namespace {

constexpr std::array<int64_t, 3> kDefaultAxes{0, 2, 3};
constexpr double kFloor = 1e-9;

std::span<const int64_t> AxesOf(const Attributes& attributes) {
  return attributes.Has("axes") ? attributes.Ints("axes") : std::span<const int64_t>(kDefaultAxes);
}

void Infer(InferContext& c) {
  if (c.in(0).dims) InferAxisMask(c, AxesOf(c.attrs()), c.in(0).rank(), true);
  InferLikeFirst(c);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& shape = call.x(0).shape();
  const auto strides = shape.Strides();
  uint32_t mask = 0;
  for (int64_t axis : AxesOf(call.attrs()))
    mask |= 1U << NormalizeAxis(axis, shape.rank(), call.schema->name);
  ReducePlan::Walk keep, drop;
  for (int d = 0; d < shape.rank(); ++d)
    (HasAxis(mask, d) ? drop : keep).Append(shape[d], strides[static_cast<size_t>(d)]);
  if (call.x(0).elements() == 0) return;
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    T* y = call.y(0).data<T>();
    ParallelFor(keep.count, 4096 / drop.count + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t base = keep.Offset(i);
        const auto count = static_cast<double>(drop.count);
        double mean = 0, squares = 0;
        for (int64_t k = 0; k < drop.count; ++k) mean += Widen(x[base + drop.Offset(k)]) / count;
        for (int64_t k = 0; k < drop.count; ++k) {
          const double away = Widen(x[base + drop.Offset(k)]) - mean;
          squares += away * away;
        }
        const double spread = std::sqrt(squares / count) + kFloor;
        for (int64_t k = 0; k < drop.count; ++k) {
          const int64_t at = base + drop.Offset(k);
          y[at] = Narrow<T>((Widen(x[at]) - mean) / spread);
        }
      }
    });
  });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema s = MakeSchema(
      {.name = "MeanVarianceNormalization",
       .since = since,
       .until = until,
       .types = types,
       .attributes = {{.name = "axes", .type = AttributeType::kInts, .note = "default 0, 2, 3"}},
       .infer = Infer,
       .cost = NormCost,
       .samples = std::move(samples)});
  s.doc = "zero mean and unit variance over the axes";
  return s;
}

WHIMBREL_REGISTER(Schema(9, 13, kFloatTypesTo12, {"f32:2x3x4x5", "f32:3x4 axes=1"}));
WHIMBREL_REGISTER(Schema(13, INT_MAX, kFloatTypes,
                         {"f32:2x16x20x20", "f32:1x3x1x1", "f32:3x5x7 axes=0,-1", "f32:0x3x4x5",
                          "f32:2x3x4x5 nan=1", "f32:5 axes=0", "f64:2x3x4x5", "f16:2x3x4x5",
                          "bf16:2x3x4x5 axes=2,3"}));
WHIMBREL_REGISTER(Kernel{
    .op = "MeanVarianceNormalization", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
