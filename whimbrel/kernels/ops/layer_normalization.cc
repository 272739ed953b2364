// LayerNormalization: y[r, e] = (x[r, e] - mean_r) / sqrt(var_r + epsilon) * scale[e] + b[e], rows
// over dims [axis, rank).
//
// in   X          any rank >= 1  f32 | f64 | f16 | bf16
//      Scale, B   broadcastable to the dims of a row; B optional
// attr axis       int, default -1; epsilon  float, default 1e-5, added to the variance
//      stash_type type of Mean and InvStdDev: 1 = f32 (default), 16 = bf16
// out  Y          like X
//      Mean, InvStdDev  dims of X with 1 from axis on, optional
// Source: ONNX operator LayerNormalization (17); Ba et al. 2016. Sums are in double, so that fp16
// rows of large values keep their variance.

#include "whimbrel/kernels/ops/norm_common.h"

namespace whimbrel {
namespace {

constexpr TypeMask kStashTypes = TypeBit(DType::kFloat) | TypeBit(DType::kBFloat16);

DType StashType(std::string_view op, const Attributes& attributes) {
  const int64_t type = attributes.Int("stash_type", 1);
  if (type == 1) return DType::kFloat;
  if (type == 16) return DType::kBFloat16;
  throw Error(Code::kInvalidData,
              std::string(op) + ": stash_type is 1 or 16, is " + std::to_string(type));
}

void Infer(InferContext& c) {
  const DType stash = StashType(c.schema().name, c.attrs());
  std::optional<Dims> statistics;
  if (c.in(0).dims) {
    const Dims& x = *c.in(0).dims;
    const int axis = NormalizeAxis(c.attrs().Int("axis", -1), c.in(0).rank(), c.schema().name);
    for (size_t input : {size_t{1}, size_t{2}}) CheckRowParameter(c, input, x, axis);
    statistics = RowStatistic(x, axis);
  }
  InferLikeFirst(c);
  c.SetOut(1, stash, statistics);
  c.SetOut(2, stash, statistics);
}

void StoreStatistic(const OpCall& call, size_t output, int64_t row, double value) {
  if (call.has_out(output)) SetElementFromDouble(call.y(output), row, value);
}

template <typename T>
void RunTyped(const OpCall& call) {
  const Shape& shape = call.x(0).shape();
  const int axis = NormalizeAxis(call.attrs().Int("axis", -1), shape.rank(), call.schema->name);
  const double epsilon = call.attrs().Float("epsilon", 1e-5);
  const int64_t rows = shape.Product(0, axis), length = shape.Product(axis, shape.rank());
  const Shape row_shape(shape.dims().subspan(static_cast<size_t>(axis)));
  const Shape one;
  const BroadcastWalk<2> walk(row_shape,
                              {&call.x(1).shape(), call.has(2) ? &call.x(2).shape() : &one});
  const T* x = call.x(0).template data<T>();
  const T* scale = call.x(1).template data<T>();
  const T* shift = call.has(2) ? call.x(2).template data<T>() : nullptr;
  T* y = call.y(0).template data<T>();
  ParallelFor(rows, 8192 / std::max<int64_t>(length, 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* from = x + row * length;
      const RowMoments m =
          MomentsOf(length, epsilon, true, [from](int64_t k) { return Widen(from[k]); });
      walk.Run(0, length, [&](int64_t i, const std::array<int64_t, 2>& at) {
        const double add = shift == nullptr ? 0 : Widen(shift[at[1]]);
        y[row * length + i] =
            Narrow<T>((Widen(from[i]) - m.mean) * m.inverse * Widen(scale[at[0]]) + add);
      });
      StoreStatistic(call, 1, row, m.mean);
      StoreStatistic(call, 2, row, m.inverse);
    }
  });
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() { RunTyped<T>(call); });
}

WHIMBREL_REGISTER(OpSchema{
    .name = "LayerNormalization",
    .since = 17,
    .inputs = {{.name = "X", .types = kFloatTypes, .group = 1},
               {.name = "Scale", .types = kFloatTypes, .group = 1},
               {.name = "B", .types = kFloatTypes, .optional = true, .group = 1}},
    .outputs = {{.name = "Y", .types = kFloatTypes, .group = 1},
                {.name = "Mean", .types = kStashTypes, .optional = true},
                {.name = "InvStdDev", .types = kStashTypes, .optional = true}},
    .attributes = {{.name = "axis",
                    .type = AttributeType::kInt,
                    .note = "default -1; a row is all dims from it on"},
                   {.name = "epsilon",
                    .type = AttributeType::kFloat,
                    .note = "default 1e-5, added to the variance"},
                   {.name = "stash_type",
                    .type = AttributeType::kInt,
                    .note = "1 = f32 (default), 16 = bf16"}},
    .infer = Infer,
    .cost = NormCost,
    .samples = {"f32:4x768 f32:768! f32:768!", "f32:1x1 f32:1! f32:1!",
                "f32:3x7x17 f32:17! f32:17! outputs=3",
                "f32:2x3x4x5 f32:4x5! f32:4x5! axis=2 outputs=3",
                "f32:2x3x4 f32:3x4! axis=-2 epsilon=1e-3", "f32:2x3x4 f32:3x4! f32:4! axis=1",
                "f32:5 f32:5! f32:5! axis=0 outputs=3", "f32:0x8 f32:8! f32:8! outputs=3",
                "f32:128x1024 f32:1024! f32:1024!", "f32:2x6@10..11 f32:6! f32:6!",
                "f32:2x8 f32:8! f32:8! nan=1", "f64:3x9 f64:9! f64:9!",
                "f16:3x40 f16:40! f16:40! outputs=3", "f16:2x4@-60000..60000 f16:4@1..1! f16:4!",
                "bf16:3x40 bf16:40! bf16:40!"},
    .doc = "zero mean and unit variance for each row",
});
WHIMBREL_REGISTER(Kernel{
    .op = "LayerNormalization", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
