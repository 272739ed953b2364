// Gemm: y = alpha op(a) op(b) + beta c, op = transpose where asked; c broadcasts to [rows, cols].
//
// in   A  [rows, depth] or transposed  f32 | f64 | f16, from 9 i32 | i64 | u32 | u64, from 13 bf16
//      B  [depth, cols] or transposed
//      C  broadcastable to [rows, cols]; optional from 11
// attr alpha, beta  float, default 1; transA, transB  int, default 0
// out  Y  [rows, cols]
// Source: ONNX operator Gemm (7, 9, 11, 13). Integers wrap with factors 1; with others they are
// computed in double and cut.

#include <cmath>

#include "whimbrel/kernels/ops/matmul_common.h"

namespace whimbrel {
namespace {

constexpr TypeMask kWideIntegers = TypeBit(DType::kInt32) | TypeBit(DType::kInt64) |
                                   TypeBit(DType::kUint32) | TypeBit(DType::kUint64);
constexpr TypeMask kOldFloats = kFloatTypes & ~TypeBit(DType::kBFloat16);

bool Transposed(const Attributes& attributes, std::string_view name) {
  return attributes.Int(name, 0) != 0;
}

MatMulGeometry GeometryOf(const OpCall& call) {
  return MakeMatMulGeometry(call.schema->name, call.x(0).shape(), call.x(1).shape(),
                            Transposed(call.attrs(), "transA"), Transposed(call.attrs(), "transB"));
}

void Infer(InferContext& c) {
  for (size_t i = 0; i < 2; ++i) {
    if (c.in(i).dims && c.in(i).dims->size() != 2)
      c.Fail("A and B are matrices, one is " + ToString(*c.in(i).dims));
  }
  const auto out =
      InferMatMulDims(c, Transposed(c.attrs(), "transA"), Transposed(c.attrs(), "transB"));
  if (out && c.has(2) && c.in(2).dims) {
    const Dims& added = *c.in(2).dims;
    const auto sum = BroadcastDims(*out, added);
    bool fits = sum.has_value() && sum->size() == 2;
    for (size_t i = 0; fits && i < 2; ++i) {
      const Dim& want = (*out)[i];
      fits = !want.known() || !(*sum)[i].known() || want.Is((*sum)[i].value());
    }
    if (!fits) c.Fail("C " + ToString(added) + " does not broadcast to " + ToString(*out));
  }
  c.SetOut(0, c.in(0).dtype, out ? out : std::optional<Dims>(Dims(2)));
}

Cost GemmCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops =
      2 * GeometryOf(call).macs() + (call.has(2) ? static_cast<double>(call.y(0).elements()) : 0);
  return cost;
}

size_t Workspace(const OpCall& call) {
  return WidenedBytes(call.x(0)) + WidenedBytes(call.x(1));
}

// Element (row, column) of C, or 0.
template <typename T>
class Added {
 public:
  explicit Added(const OpCall& call) : data_(call.has(2) ? call.x(2).template data<T>() : nullptr) {
    if (data_ == nullptr) return;
    const Shape& shape = call.x(2).shape();
    if (shape.rank() > 0 && shape[-1] != 1) column_stride_ = 1;
    if (shape.rank() > 1 && shape[0] != 1) row_stride_ = shape[1];
  }
  bool there() const { return data_ != nullptr; }
  T At(int64_t row, int64_t column) const {
    return data_[row * row_stride_ + column * column_stride_];
  }

 private:
  const T* data_;
  int64_t row_stride_ = 0, column_stride_ = 0;
};

// An integer result by way of double; what does not fit is the nearest end.
template <typename T>
T CutToInteger(double value) {
  constexpr T kLow = std::numeric_limits<T>::lowest(), kHigh = std::numeric_limits<T>::max();
  if (!(value > static_cast<double>(kLow))) return kLow;
  if (value >= static_cast<double>(kHigh)) return kHigh;
  return static_cast<T>(value);
}

template <typename T>
void RunTyped(const OpCall& call, std::span<std::byte> workspace) {
  const double alpha = call.attrs().Float("alpha", 1), beta = call.attrs().Float("beta", 1);
  const auto* a = WidenInput<T>(call.x(0), workspace);
  const auto* b = WidenInput<T>(call.x(1), workspace);
  const Added<T> added(call);
  T* y = call.y(0).template data<T>();
  MatMulReference(GeometryOf(call), a, b, [&](int64_t at, int64_t row, int64_t column, auto sums) {
    for (size_t j = 0; j < sums.size(); ++j) {
      const auto step = static_cast<int64_t>(j);
      const T c = added.there() ? added.At(row, column + step) : T{};
      T& to = y[at + step];
      if constexpr (std::is_integral_v<T>) {
        if (alpha == 1 && (beta == 1 || !added.there())) {
          to = static_cast<T>(sums[j] + static_cast<std::make_unsigned_t<T>>(c));
        } else {
          const auto product = static_cast<double>(static_cast<T>(sums[j]));
          to = CutToInteger<T>(alpha * product + beta * static_cast<double>(c));
        }
      } else {
        // beta = 0 leaves C out, NaN or not, as BLAS does
        const double extra = added.there() && beta != 0 ? beta * Widen(c) : 0;
        to = Narrow<T>(alpha * sums[j] + extra);
      }
    }
  });
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  DispatchReference<kFloatTypes | kWideIntegers>(
      call, call.x(0).dtype(), [&]<typename T>() { RunTyped<T>(call, workspace); });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return {
      .name = "Gemm",
      .since = since,
      .until = until,
      .inputs = {{.name = "A", .types = types, .group = 1},
                 {.name = "B", .types = types, .group = 1},
                 {.name = "C", .types = types, .optional = since >= 11, .group = 1}},
      .outputs = {{.name = "Y", .types = types, .group = 1}},
      .attributes = {{.name = "alpha", .type = AttributeType::kFloat, .note = "default 1"},
                     {.name = "beta", .type = AttributeType::kFloat, .note = "default 1"},
                     {.name = "transA", .type = AttributeType::kInt, .note = "default 0"},
                     {.name = "transB", .type = AttributeType::kInt, .note = "default 0"}},
      .infer = Infer,
      .cost = GemmCost,
      .samples = std::move(samples),
      .matrix_op = true,
      .doc = "matrix product with factors and addend",
  };
}

WHIMBREL_REGISTER(Schema(7, 9, kOldFloats, {"f32:4x5 f32:5x6! f32:6!", "f64:2x3 f64:3x4 f64:2x1"}));
WHIMBREL_REGISTER(Schema(9, 11, kOldFloats | kWideIntegers,
                         {"f32:4x5 f32:6x5! f32:6! transB=1", "i32:2x3 i32:3x4 i32:4"}));
WHIMBREL_REGISTER(Schema(11, 13, kOldFloats | kWideIntegers,
                         {"f32:4x5 f32:5x6", "f32:4x5 f32:5x6 f32:4x6 beta=0.5"}));
WHIMBREL_REGISTER(Schema(13, INT_MAX, kFloatTypes | kWideIntegers,
                         {"f32:8x64 f32:32x64! f32:32! transB=1", "f32:1x1 f32:1x1 f32:1",
                          "f32:7x13 f32:13x5! f32:5!", "f32:13x7 f32:13x5! f32:1x5! transA=1",
                          "f32:13x7 f32:5x13! f32:7x5 transA=1 transB=1 alpha=0.5 beta=2",
                          "f32:4x3 f32:3x6 f32:4x1 alpha=2", "f32:4x3 f32:3x6 f32:",
                          "f32:4x3 f32:3x6 f32:4x6 beta=0", "f32:0x5 f32:5x4 f32:4",
                          "f32:3x0 f32:0x4 f32:4", "f32:1x1280 f32:1000x1280! f32:1000! transB=1",
                          "f32:64x300 f32:300x257! f32:257!", "f64:5x6 f64:6x7 f64:7",
                          "f16:5x16 f16:16x7 f16:7", "bf16:5x16 bf16:16x7 bf16:7",
                          "i32:3x4 i32:4x5 i32:5", "i64:3x4 i64:4x5 i64:5 alpha=2",
                          "u32:3x4 u32:4x5", "u64:3x4 u64:4x5 u64:5"}));
WHIMBREL_REGISTER(Kernel{.op = "Gemm", .name = "reference", .workspace = Workspace, .run = Run});

}  // namespace
}  // namespace whimbrel
