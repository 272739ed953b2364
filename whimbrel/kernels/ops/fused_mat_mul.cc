// FusedMatMul: y = activation(alpha op(a) op(b) + bias + z), made by passes from MatMul or Gemm
// with what follows it.
//
// in   A, B   as MatMul's; op = transpose of the last two dims where asked
//      bias   broadcastable to the output, optional
//      Z      residual of the output's shape, optional
//      slope  broadcastable to the output, for activation PRelu only
// attr transA, transB, alpha (default 1), and activation, activation_alpha, activation_beta
// (ops/activation.h) out  Y      as MatMul's Source: our own; the sum is in double and rounded
// once.

#include "whimbrel/kernels/ops/activation.h"
#include "whimbrel/kernels/ops/matmul_common.h"

namespace whimbrel {
namespace {

constexpr size_t kBias = 2, kResidual = 3, kSlope = 4;

bool Transposed(const Attributes& attributes, std::string_view name) {
  return attributes.Int(name, 0) != 0;
}

MatMulGeometry GeometryOf(const OpCall& call) {
  return MakeMatMulGeometry(call.schema->name, call.x(0).shape(), call.x(1).shape(),
                            Transposed(call.attrs(), "transA"), Transposed(call.attrs(), "transB"));
}

// `exact`: the same rank and dims, else broadcasting is allowed.
void CheckAddend(const InferContext& c, size_t input, const Dims& out, bool exact) {
  if (!c.has(input) || !c.in(input).dims) return;
  const Dims& dims = *c.in(input).dims;
  bool fits = exact ? dims.size() == out.size() : dims.size() <= out.size();
  for (size_t i = 0; fits && i < dims.size(); ++i) {
    const Dim& have = dims[i];
    const Dim& want = out[out.size() - dims.size() + i];
    fits = !have.known() || !want.known() || have.Is(want.value()) || (!exact && have.Is(1));
  }
  if (!fits) {
    c.Fail("input " + std::string(c.schema().inputs[input].name) + " " + ToString(dims) +
           " does not go with the output " + ToString(out));
  }
}

void Infer(InferContext& c) {
  CheckActivation(c, kSlope);
  const auto out =
      InferMatMulDims(c, Transposed(c.attrs(), "transA"), Transposed(c.attrs(), "transB"));
  if (out) {
    CheckAddend(c, kBias, *out, false);
    CheckAddend(c, kResidual, *out, true);
    CheckAddend(c, kSlope, *out, false);
  }
  c.SetOut(0, c.in(0).dtype, out);
}

Cost FusedCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops = 2 * GeometryOf(call).macs();
  return cost;
}

size_t Workspace(const OpCall& call) {
  return WidenedBytes(call.x(0)) + WidenedBytes(call.x(1));
}

template <typename T>
void RunTyped(const OpCall& call, std::span<std::byte> workspace) {
  const double alpha = call.attrs().Float("alpha", 1);
  const Activation activation = ReadActivation(call.schema->name, call.attrs());
  const auto* a = WidenInput<T>(call.x(0), workspace);
  const auto* b = WidenInput<T>(call.x(1), workspace);
  const T* bias = call.has(kBias) ? call.x(kBias).template data<T>() : nullptr;
  const T* residual = call.has(kResidual) ? call.x(kResidual).template data<T>() : nullptr;
  const T* slope = call.has(kSlope) ? call.x(kSlope).template data<T>() : nullptr;
  const Shape one;
  const BroadcastWalk<2> walk(call.y(0).shape(),
                              {bias == nullptr ? &one : &call.x(kBias).shape(),
                               slope == nullptr ? &one : &call.x(kSlope).shape()});
  T* y = call.y(0).template data<T>();
  MatMulReference(
      GeometryOf(call), a, b, [&](int64_t at, int64_t /*row*/, int64_t /*column*/, auto sums) {
        const auto end = at + static_cast<int64_t>(sums.size());
        walk.Run(at, end, [&](int64_t i, const std::array<int64_t, 2>& from) {
          double sum = alpha * sums[static_cast<size_t>(i - at)];
          if (bias != nullptr) sum += Widen(bias[from[0]]);
          if (residual != nullptr) sum += Widen(residual[i]);
          y[i] = Narrow<T>(Activate(activation, sum, slope == nullptr ? 0 : Widen(slope[from[1]])));
        });
      });
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(),
                                 [&]<typename T>() { RunTyped<T>(call, workspace); });
}

std::vector<AttributeSpec> FusedAttributes() {
  std::vector<AttributeSpec> attributes{
      {.name = "alpha", .type = AttributeType::kFloat, .note = "default 1"},
      {.name = "transA", .type = AttributeType::kInt, .note = "default 0"},
      {.name = "transB", .type = AttributeType::kInt, .note = "default 0"}};
  for (AttributeSpec& a : ActivationAttributes()) attributes.push_back(a);
  return attributes;
}

WHIMBREL_REGISTER(OpSchema{
    .name = "FusedMatMul",
    .domain = "whimbrel",
    .inputs = {{.name = "A", .types = kFloatTypes, .group = 1},
               {.name = "B", .types = kFloatTypes, .group = 1},
               {.name = "bias", .types = kFloatTypes, .optional = true, .group = 1},
               {.name = "Z", .types = kFloatTypes, .optional = true, .group = 1},
               {.name = "slope", .types = kFloatTypes, .optional = true, .group = 1}},
    .outputs = {{.name = "Y", .types = kFloatTypes, .group = 1}},
    .attributes = FusedAttributes(),
    .infer = Infer,
    .cost = FusedCost,
    .samples = {"f32:16x32 f32:32x24! f32:24! activation=Relu",
                "f32:1x1 f32:1x1 f32:1",
                "f32:2x7x13 f32:13x5! f32:5! activation=Sigmoid",
                "f32:7x13 f32:5x13! f32:5! f32:7x5 transB=1 activation=Tanh",
                "f32:2x4x6 f32:2x4x5 transA=1 alpha=0.5",
                "f32:2x3x4x8 f32:2x3x4x8 transB=1 alpha=0.125",
                "f32:2x3x4x8 f32:2x3x4x8 f32:2x1x4x4 transB=1 alpha=0.125",
                "f32:4x5 f32:5x6! f32:6! activation=Clip activation_alpha=-1 activation_beta=1",
                "f32:4x5 f32:5x6! - f32:4x6 activation=LeakyRelu",
                "f32:4x5 f32:5x6! f32:6! - f32:6! activation=PRelu",
                "f32:4x5 f32:5x6! f32:4x1 activation=HardSigmoid",
                "f32:4x5 f32:5x6! f32: activation=HardSwish",
                "f32:4x5 f32:5x6! f32:6! activation=Swish",
                "f32:5 f32:5x6! f32:6!",
                "f32:3x4x5 f32:5",
                "f32:0x5 f32:5x4! f32:4!",
                "f32:3x0 f32:0x4 f32:4 activation=Relu",
                "f32:128x256 f32:256x300! f32:300! activation=Relu",
                "f64:5x6 f64:6x7 f64:7 activation=Tanh",
                "f16:5x16 f16:16x7 f16:7 activation=Relu",
                "bf16:5x16 bf16:16x7 bf16:7 bf16:5x7"},
    .matrix_op = true,
    .doc = "matrix product with bias, residual and activation in one pass",
});
WHIMBREL_REGISTER(Kernel{.op = "FusedMatMul",
                         .domain = "whimbrel",
                         .name = "reference",
                         .in_place = uint64_t{1} << kResidual,
                         .workspace = Workspace,
                         .run = Run});

}  // namespace
}  // namespace whimbrel
