// MatMul, FusedMatMul, Gemm by oneDNN: constant right-hand sides packed once; bias, residual,
// activation fused.
//
// oneDNN 2.6.3 takes brg:avx512_core and reaches 230-267 GFLOP/s from 8 rows on (peak 275, one
// core), also for transposed and batched operands. One row by 1024x1024: 38 us with packed weights
// (the bandwidth of L3), 95 us without; one column 227 us either way. dnnl::sgemm takes 38 us for
// both with weights as they are, so products of a vector go there. inner_product primitives were no
// faster than matmul. A call costs 0.4 us beyond its arithmetic.

#include "whimbrel/kernels/cpu/onednn_common.h"

#if defined(WHIMBREL_WITH_ONEDNN) && WHIMBREL_WITH_ONEDNN

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "whimbrel/base/threads.h"
#include "whimbrel/kernels/cpu/float_convert.h"
#include "whimbrel/kernels/reference.h"

namespace whimbrel {
namespace {

using dnnl::memory;
using onednn::Primitive;
using onednn::ScratchPlan;
using MatMulDesc = dnnl::matmul::primitive_desc;

constexpr size_t kAddend = 2, kResidual = 3, kSlope = 4;

// y[b] = activation(alpha op(a[b]) op(b[b]) + addend + beta residual): the three ops as one.
struct Problem {
  int64_t m = 1, k = 1, n = 1;
  bool transpose_a = false, transpose_b = false;
  float alpha = 1, beta = 1;
  // Batch dims of the output, and of the operands under numpy's rules; empty = one product.
  memory::dims batch, a_batch, b_batch;
  // Which input is added to each row (one value a column) / broadcast into the output before; -1 =
  // none.
  int bias = -1, residual = -1, slope = -1;
  Activation activation;

  int64_t products() const {
    int64_t count = 1;
    for (int64_t d : batch) count *= d;
    return count;
  }
  double flops() const {
    return 2.0 * static_cast<double>(products()) * static_cast<double>(m) * static_cast<double>(k) *
           static_cast<double>(n);
  }
};

memory::dims LeadingDims(const Shape& shape, size_t rank) {
  memory::dims dims(rank, 1);
  const int own = std::max(shape.rank() - 2, 0);
  for (int i = 0; i < own; ++i)
    dims[rank - static_cast<size_t>(own) + static_cast<size_t>(i)] = shape[i];
  return dims;
}

bool AllOne(const memory::dims& dims) {
  return std::all_of(dims.begin(), dims.end(), [](int64_t d) { return d == 1; });
}

bool PerColumn(const Tensor& t, int64_t n) {
  return t.elements() == n && (t.shape().rank() == 0 || t.shape()[-1] == n);
}

Problem ReadGemm(const OpCall& call) {
  Problem p;
  const Attributes& attrs = call.attrs();
  p.transpose_a = attrs.Int("transA", 0) != 0;
  p.transpose_b = attrs.Int("transB", 0) != 0;
  p.alpha = static_cast<float>(attrs.Float("alpha", 1));
  p.beta = static_cast<float>(attrs.Float("beta", 1));
  const Shape& a = call.x(0).shape();
  const Shape& b = call.x(1).shape();
  p.m = a[p.transpose_a ? 1 : 0];
  p.k = a[p.transpose_a ? 0 : 1];
  p.n = b[p.transpose_b ? 0 : 1];
  if (call.has(kAddend) && p.beta != 0) {
    const bool alpha_is_free = p.alpha == 1 || call.constant(1);  // as in PlaceAddends
    const bool beta_is_free = p.beta == 1 || call.constant(kAddend);
    (PerColumn(call.x(kAddend), p.n) && alpha_is_free && beta_is_free ? p.bias : p.residual) =
        static_cast<int>(kAddend);
  }
  return p;
}

// Where FusedMatMul's bias and Z go.
void PlaceAddends(const OpCall& call, bool packable, Problem& p) {
  if (call.has(kResidual)) p.residual = static_cast<int>(kResidual);
  if (!call.has(kAddend)) return;
  // oneDNN scales the bias by alpha too; constant weights take alpha in when they are packed
  const bool alpha_is_free = p.alpha == 1 || packable;
  const bool as_bias = call.has(kResidual) || (PerColumn(call.x(kAddend), p.n) && alpha_is_free);
  (as_bias ? p.bias : p.residual) = static_cast<int>(kAddend);
}

Problem ReadMatMul(const OpCall& call) {
  Problem p;
  const Shape& a = call.x(0).shape();
  const Shape& b = call.x(1).shape();
  p.transpose_a = a.rank() > 1 && call.attrs().Int("transA", 0) != 0;
  p.transpose_b = b.rank() > 1 && call.attrs().Int("transB", 0) != 0;
  p.alpha = static_cast<float>(call.attrs().Float("alpha", 1));
  p.k = a[p.transpose_a ? -2 : -1];
  p.m = a.rank() == 1 ? 1 : a[p.transpose_a ? -1 : -2];
  p.n = b.rank() == 1 ? 1 : b[p.transpose_b ? -2 : -1];
  const auto rank = static_cast<size_t>(std::max({a.rank(), b.rank(), 2}) - 2);
  p.a_batch = LeadingDims(a, rank);
  p.b_batch = LeadingDims(b, rank);
  p.batch.resize(rank);
  for (size_t i = 0; i < rank; ++i) {
    p.batch[i] = p.a_batch[i] == 1 ? p.b_batch[i] : p.a_batch[i];
  }
  if (AllOne(p.b_batch) && (!p.transpose_a || AllOne(p.a_batch))) {
    p.m *= p.products();  // one right-hand side: all rows in one product
    p.batch.clear();
  } else if (p.a_batch == p.b_batch) {
    p.batch = {p.products()};
    p.a_batch = p.b_batch = p.batch;
  }
  if (p.batch.empty()) p.a_batch = p.b_batch = {};
  PlaceAddends(call, p.batch.empty() && call.constant(1), p);
  if (call.has(kSlope)) p.slope = static_cast<int>(kSlope);
  p.activation = ReadActivation(call.schema->name, call.attrs());
  return p;
}

Problem Read(const OpCall& call) {
  return call.schema->name == "Gemm" ? ReadGemm(call) : ReadMatMul(call);
}

// A row-major matrix per batch entry, or its transposition seen through strides.
memory::desc MatrixDesc(memory::dims batch, int64_t rows, int64_t cols, bool transposed) {
  batch.push_back(transposed ? cols : rows);
  batch.push_back(transposed ? rows : cols);
  memory::desc desc = onednn::DenseDesc(batch);
  if (!transposed) return desc;
  std::vector<int> swap(batch.size());
  for (size_t i = 0; i < swap.size(); ++i) swap[i] = static_cast<int>(i);
  std::swap(swap[swap.size() - 2], swap[swap.size() - 1]);
  return desc.permute_axes(swap);
}

// How a problem is computed.
enum class Form : uint8_t {
  kPrimitive,  // one primitive, batched or not
  kLoop,       // one primitive per product: where oneDNN has only its reference for the broadcast
  kVector,     // dnnl::sgemm per product
};

struct Plan {
  Form form = Form::kPrimitive;
  bool packed = false;
  MatMulDesc desc = {};  // empty for kVector
};

bool Slow(const MatMulDesc& desc) {
  return std::string_view(desc.impl_info_str()).substr(0, 3) == "ref";
}

MatMulDesc MakeDesc(const Problem& p, bool packed, const memory::dims& a_batch,
                    const memory::dims& b_batch, const memory::dims& batch) {
  dnnl::post_ops post_ops;
  if (p.residual >= 0) post_ops.append_sum(p.beta);
  onednn::AppendActivation(post_ops, p.activation);
  auto attr = onednn::UserScratch(post_ops);
  if (p.alpha != 1 && !packed) attr.set_output_scales(0, {p.alpha});
  const memory::desc a = MatrixDesc(a_batch, p.m, p.k, p.transpose_a);
  // The any-form of batched weights crashes in 2.6.3 (8x64x32x64), so only matrices are packed.
  const memory::desc b =
      packed ? memory::desc({p.k, p.n}, memory::data_type::f32, memory::format_tag::any)
             : MatrixDesc(b_batch, p.k, p.n, p.transpose_b);
  const memory::desc y = MatrixDesc(batch, p.m, p.n, false);
  if (p.bias < 0) return {dnnl::matmul::desc(a, b, y), attr, onednn::Engine()};
  memory::dims bias_dims(batch.size() + 2, 1);
  bias_dims.back() = p.n;
  return {dnnl::matmul::desc(a, b, onednn::DenseDesc(bias_dims), y), attr, onednn::Engine()};
}

// sgemm adds to one thing at most and knows no activation.
bool IsVectorProduct(const OpCall& call, const Problem& p) {
  return (p.m == 1 || p.n == 1) && call.x(0).dtype() == DType::kFloat &&
         p.activation.kind == ActivationKind::kNone && (p.bias < 0 || p.residual < 0);
}

Plan MakePlan(const OpCall& call, const Problem& p) {
  if (IsVectorProduct(call, p)) return {.form = Form::kVector};
  if (p.batch.empty()) {
    const bool packed = call.constant(1);
    return {.packed = packed, .desc = MakeDesc(p, packed, {}, {}, {})};
  }
  MatMulDesc desc = MakeDesc(p, false, p.a_batch, p.b_batch, p.batch);
  if (!Slow(desc)) return {.desc = desc};
  return {.form = Form::kLoop, .desc = MakeDesc(p, false, {}, {}, {})};
}

class MatMulState final : public onednn::TeamState {
 public:
  explicit MatMulState(const OpCall& call);
  size_t bytes() const override { return resident_bytes_; }
  size_t workspace_bytes() const { return scratch_.bytes(); }
  void Run(const OpCall& call, std::span<std::byte> workspace);

 private:
  void PrepareOperands(const OpCall& call, const MatMulDesc& desc);
  const float* Wide(const Tensor& tensor, std::span<std::byte> workspace, size_t at) const;
  void Spread(const Tensor& addend, float scale, const Shape& shape, float* y) const;
  std::pair<int64_t, int64_t> Operands(int64_t product) const;
  void Multiply(const float* a, const float* b, float* y, std::span<std::byte> workspace);
  void MultiplyVectors(const float* a, const float* b, float* y) const;

  Problem problem_;
  Form form_ = Form::kPrimitive;
  Primitive matmul_;
  std::vector<float> bias_, b_;  // f32 copies of constants where the call's own will not do
  size_t resident_bytes_ = 0;
  bool alone_ = false, half_ = false, packed_ = false;
  ScratchPlan scratch_;
  size_t a_slot_ = 0, b_slot_ = 0, y_slot_ = 0, bias_slot_ = 0, scratchpad_slot_ = 0;
  size_t scratchpad_at_ = 0, a_at_ = 0, b_at_ = 0, y_at_ = 0;
};

MatMulState::MatMulState(const OpCall& call)
    : problem_(Read(call)),
      alone_(problem_.flops() < onednn::kTeamFlops),
      half_(onednn::IsHalfWidth(call.x(0).dtype())) {
  const onednn::TeamScope team(alone_);
  const Plan plan = MakePlan(call, problem_);
  form_ = plan.form;
  packed_ = plan.packed;
  if (form_ == Form::kVector) return;
  matmul_.Create(dnnl::matmul(plan.desc));
  a_slot_ = matmul_.AddArgument(DNNL_ARG_SRC, plan.desc.src_desc());
  y_slot_ = matmul_.AddArgument(DNNL_ARG_DST, plan.desc.dst_desc());
  scratchpad_slot_ = matmul_.AddArgument(DNNL_ARG_SCRATCHPAD, plan.desc.scratchpad_desc());
  scratchpad_at_ = scratch_.Add(plan.desc.scratchpad_desc().get_size());
  PrepareOperands(call, plan.desc);
  if (half_) {
    a_at_ = scratch_.Add(static_cast<size_t>(call.x(0).elements()) * sizeof(float));
    y_at_ = scratch_.Add(static_cast<size_t>(call.y(0).elements()) * sizeof(float));
    if (!packed_) b_at_ = scratch_.Add(static_cast<size_t>(call.x(1).elements()) * sizeof(float));
  }
}

void MatMulState::PrepareOperands(const OpCall& call, const MatMulDesc& desc) {
  const Problem& p = problem_;
  if (packed_) {
    std::vector<float> scaled;
    const void* values = call.x(1).raw();
    if (half_ || p.alpha != 1) {
      scaled = onednn::FloatValues(call.x(1));
      for (float& v : scaled) v *= p.alpha;
      values = scaled.data();
    }
    const memory::desc plain = MatrixDesc({}, p.k, p.n, p.transpose_b);
    matmul_.AddFixed(DNNL_ARG_WEIGHTS, onednn::Reordered(plain, values, desc.weights_desc()));
    resident_bytes_ += desc.weights_desc().get_size();
  } else {
    b_slot_ = matmul_.AddArgument(DNNL_ARG_WEIGHTS, desc.weights_desc());
  }
  if (p.bias >= 0) {
    bias_slot_ = matmul_.AddArgument(DNNL_ARG_BIAS, desc.bias_desc());
    const bool gemm_scaled = p.residual < 0 && p.beta != 1;
    if (half_ || gemm_scaled) {
      bias_ = onednn::FloatValues(call.x(static_cast<size_t>(p.bias)));
      for (float& v : bias_) v *= p.beta;
      resident_bytes_ += bias_.size() * sizeof(float);
    }
  }
}

const float* MatMulState::Wide(const Tensor& tensor, std::span<std::byte> workspace,
                               size_t at) const {
  if (!half_) return tensor.data<float>();
  auto* const wide = static_cast<float*>(onednn::At(workspace, at));
  ToFloat(tensor.dtype(), tensor.raw(), wide, tensor.elements());
  return wide;
}

// y = scale * addend, broadcast to the output: what a product is then added to.
void MatMulState::Spread(const Tensor& addend, float scale, const Shape& shape, float* y) const {
  const int64_t count = shape.elements();
  if (addend.elements() == count && scale == 1) {
    if (addend.raw() != y) ToFloat(addend.dtype(), addend.raw(), y, count);
    return;
  }
  const BroadcastWalk<1> walk(shape, {&addend.shape()});
  const auto* from = addend.data<float>();
  ParallelFor(count, 16384, [&](int64_t begin, int64_t end) {
    walk.Run(begin, end,
             [&](int64_t i, const std::array<int64_t, 1>& at) { y[i] = scale * from[at[0]]; });
  });
}

// Which matrices of a and b go into product number `product`.
std::pair<int64_t, int64_t> MatMulState::Operands(int64_t product) const {
  int64_t a = 0, b = 0, a_step = 1, b_step = 1;
  for (size_t i = problem_.batch.size(); i-- > 0;) {
    const int64_t at = product % problem_.batch[i];
    product /= problem_.batch[i];
    if (problem_.a_batch[i] != 1) a += at * a_step;
    if (problem_.b_batch[i] != 1) b += at * b_step;
    a_step *= problem_.a_batch[i];
    b_step *= problem_.b_batch[i];
  }
  return {a, b};
}

void MatMulState::Multiply(const float* a, const float* b, float* y,
                           std::span<std::byte> workspace) {
  const Problem& p = problem_;
  matmul_.Bind(scratchpad_slot_, onednn::At(workspace, scratchpad_at_));
  const int64_t runs = form_ == Form::kLoop ? p.products() : 1;
  for (int64_t i = 0; i < runs; ++i) {
    const auto [a_matrix, b_matrix] = runs > 1 ? Operands(i) : std::pair<int64_t, int64_t>();
    matmul_.Bind(a_slot_, a + a_matrix * p.m * p.k);
    if (!packed_) matmul_.Bind(b_slot_, b + b_matrix * p.k * p.n);
    matmul_.Bind(y_slot_, y + i * p.m * p.n);
    matmul_.Run();
  }
}

void MatMulState::MultiplyVectors(const float* a, const float* b, float* y) const {
  const Problem& p = problem_;
  const float beta = p.residual >= 0 ? p.beta : (p.bias >= 0 ? 1.0f : 0.0f);
  for (int64_t i = 0; i < p.products(); ++i) {
    const auto [a_matrix, b_matrix] = Operands(i);
    const dnnl::status status =
        dnnl::sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', p.m, p.n, p.k, p.alpha,
                    a + a_matrix * p.m * p.k, p.transpose_a ? p.m : p.k, b + b_matrix * p.k * p.n,
                    p.transpose_b ? p.k : p.n, beta, y + i * p.m * p.n, p.n);
    if (status != dnnl::status::success)
      throw dnnl::error(static_cast<dnnl_status_t>(status), "sgemm");
  }
}

void MatMulState::Run(const OpCall& call, std::span<std::byte> workspace) {
  const onednn::TeamScope team(alone_);
  const Problem& p = problem_;
  const float* a = Wide(call.x(0), workspace, a_at_);
  const float* b = packed_ ? nullptr : Wide(call.x(1), workspace, b_at_);
  auto* const y =
      half_ ? static_cast<float*>(onednn::At(workspace, y_at_)) : call.y(0).data<float>();
  const Shape& shape = call.y(0).shape();
  const Tensor* bias = p.bias >= 0 ? call.in[static_cast<size_t>(p.bias)] : nullptr;
  if (p.residual >= 0) Spread(call.x(static_cast<size_t>(p.residual)), 1, shape, y);
  if (form_ == Form::kVector) {
    if (bias != nullptr) Spread(*bias, p.beta, shape, y);
    MultiplyVectors(a, b, y);
  } else {
    if (bias != nullptr) {
      matmul_.Bind(bias_slot_,
                   bias_.empty() ? bias->raw() : static_cast<const void*>(bias_.data()));
    }
    Multiply(a, b, y, workspace);
  }
  if (p.slope >= 0) {
    onednn::ApplySlope(call.x(static_cast<size_t>(p.slope)), y, p.m * p.products(), p.n);
  }
  if (half_) FromFloat(call.y(0).dtype(), y, call.y(0).raw(), call.y(0).elements());
}

std::string ObstacleOfAddends(const OpCall& call, const Problem& p, bool half) {
  if (p.bias >= 0) {
    const auto bias = static_cast<size_t>(p.bias);
    if (!PerColumn(call.x(bias), p.n))
      return "beside a residual the bias must be one value a column";
    if (p.alpha != 1 && p.residual >= 0 && !(call.constant(1) && p.batch.empty())) {
      return "bias, residual and alpha at once";
    }
    if (half && !call.constant(bias)) return "the 16-bit bias is not constant";
  }
  if (p.slope >= 0) {
    const Tensor& slope = call.x(static_cast<size_t>(p.slope));
    if (half) return "the slope is 16 bits wide";
    if (slope.elements() != 1 && !PerColumn(slope, p.n))
      return "the slope is not one value a column";
  }
  if (half && p.residual >= 0 &&
      call.x(static_cast<size_t>(p.residual)).elements() != call.y(0).elements()) {
    return "the 16-bit addend is broadcast";
  }
  return onednn::ActivationObstacle(p.activation);
}

std::string Obstacle(const OpCall& call) {
  const DType type = call.x(0).dtype();
  if ((TypeBit(type) & onednn::kTypes) == 0) {
    return fmt::format("type {} is not f32, f16 or bf16", DTypeName(type));
  }
  for (const Tensor* t : {call.in[0], call.in[1], static_cast<const Tensor*>(call.out[0])}) {
    if (t->elements() == 0) return "a tensor has no elements";
    if (t->elements() > INT32_MAX / 4) return "a tensor is larger than 2 GiB";
    if (t->layout() != Layout::kPlain) return "a tensor is channels-last";
  }
  const Problem p = Read(call);
  std::string why = ObstacleOfAddends(call, p, onednn::IsHalfWidth(type));
  if (!why.empty()) return why;
  const Plan plan = MakePlan(call, p);
  if (plan.form != Form::kVector && Slow(plan.desc))
    return "oneDNN has only its reference for this case";
  return "";
}

bool Accepts(const OpCall& call, std::string* why) {
  try {
    *why = Obstacle(call);
  } catch (const dnnl::error& e) {
    *why = std::string("oneDNN refuses the case: ") + e.what();
  }
  return why->empty();
}

std::unique_ptr<KernelState> Prepare(const OpCall& call) {
  return onednn::Guarded(call.schema->name, [&] { return std::make_unique<MatMulState>(call); });
}

size_t Workspace(const OpCall& call) {
  return static_cast<const MatMulState*>(call.state)->workspace_bytes();
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  onednn::RunState<MatMulState>(call, workspace);
}

Kernel MatMulKernel(std::string_view op, std::string_view domain, uint64_t in_place) {
  return {.op = op,
          .domain = domain,
          .name = "onednn",
          .rank = 100,
          .isa = Isa::kAvx2,
          .in_place = in_place,
          .accepts = Accepts,
          .workspace = Workspace,
          .prepare = Prepare,
          .run = Run};
}

WHIMBREL_REGISTER(MatMulKernel("MatMul", "", 0));
WHIMBREL_REGISTER(MatMulKernel("Gemm", "", 0));
WHIMBREL_REGISTER(MatMulKernel("FusedMatMul", "whimbrel", uint64_t{1} << kResidual));

}  // namespace
}  // namespace whimbrel

#endif
