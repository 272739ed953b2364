// LinearAttention: a state S [key size, value size] of each head is updated by each step's k and v,
// then read: o = scale q^T S.
//
//   linear       S += k v^T
//   gated        S = exp(g) S + k v^T
//   delta        S += b k (v - S^T k)^T
//   gated_delta  S = exp(g) S, then as delta
//
// in   query  [batch, seq, q heads * dk]  f32 | f16 | bf16
//      key    [batch, seq, kv heads * dk];  value  [batch, seq, kv heads * dv]
//      past_state  [batch, kv heads, dk, dv]  f32 | f16 | bf16, optional, default 0
//      decay  g, [batch, seq, kv heads] or [.., kv heads * dk]: for the gated rules only
//      beta   b, [batch, seq, kv heads] or [.., 1]: for the delta rules only
// attr q_num_heads, kv_num_heads  query heads share the states in groups
//      update_rule  default gated_delta; scale  0 (default): 1 / sqrt(dk); chunk_size  a hint
// out  output         [batch, seq, q heads * dv]
//      present_state  like past_state, without one the type of query
// Source: ONNX operator LinearAttention (27). The state is kept in double.

#include <fmt/format.h>

#include "whimbrel/kernels/ops/check_dims.h"
#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

enum Input : size_t { kQuery, kKey, kValue, kPast, kDecay, kBeta };
constexpr TypeMask kTypes = TypeBit(DType::kFloat) | TypeBit(DType::kFloat16) | kBFloat16Type;

struct Rule {
  bool gated = false, delta = false;
};

Rule ReadRule(std::string_view op, const Attributes& attributes) {
  const std::string_view name = attributes.String("update_rule", "gated_delta");
  if (name == "linear") return {false, false};
  if (name == "gated") return {true, false};
  if (name == "delta") return {false, true};
  if (name == "gated_delta") return {true, true};
  throw Error(Code::kInvalidData, fmt::format("{}: update_rule \"{}\" is not known", op, name));
}

// A packed last dim taken apart into heads.
Dim HeadSize(const InferContext& c, size_t input, int64_t heads) {
  if (!c.in(input).dims) return Dim();
  const Dims& dims = *c.in(input).dims;
  if (dims.size() != 3) {
    c.Fail(
        fmt::format("{} must have rank 3, is {}", c.schema().inputs[input].name, ToString(dims)));
  }
  if (dims[2].known() && dims[2].value() % heads != 0) {
    c.Fail(fmt::format("{} {} does not divide into {} heads", c.schema().inputs[input].name,
                       ToString(dims), heads));
  }
  return FloorDiv(dims[2], Dim(heads));
}

void CheckSteps(const InferContext& c, size_t input, const Dims& steps,
                std::initializer_list<Dim> last) {
  if (!c.has(input) || !c.in(input).dims) return;
  const Dims& dims = *c.in(input).dims;
  bool fits = dims.size() == 3 && !Differ(dims[0], steps[0]) && !Differ(dims[1], steps[1]);
  fits = fits && std::any_of(last.begin(), last.end(),
                             [&](const Dim& want) { return !Differ(dims[2], want); });
  if (!fits) {
    c.Fail(fmt::format("{} {} does not fit the query {}", c.schema().inputs[input].name,
                       ToString(dims), ToString(steps)));
  }
}

void Infer(InferContext& c) {
  const Rule rule = ReadRule(c.schema().name, c.attrs());
  const int64_t q_heads = c.attrs().Int("q_num_heads", 0), heads = c.attrs().Int("kv_num_heads", 0);
  constexpr int64_t kMost = int64_t{1} << 31;
  if (q_heads < 1 || heads < 1 || q_heads > kMost || heads > kMost || q_heads % heads != 0)
    c.Fail(fmt::format("{} query heads cannot share {} states", q_heads, heads));
  if (rule.gated != c.has(kDecay)) c.Fail("decay goes with the gated rules, and only with them");
  if (rule.delta != c.has(kBeta)) c.Fail("beta goes with the delta rules, and only with them");
  const Dim dk = HeadSize(c, kQuery, q_heads), key = HeadSize(c, kKey, heads),
            dv = HeadSize(c, kValue, heads);
  if (Differ(dk, key))
    c.Fail(fmt::format("heads of query and key have {} and {} elements", dk.value(), key.value()));
  const Dims steps = c.in(kQuery).dims ? *c.in(kQuery).dims : Dims(3);
  CheckSteps(c, kKey, steps, {Dim()});
  CheckSteps(c, kValue, steps, {Dim()});
  CheckSteps(c, kDecay, steps, {heads, dk * Dim(heads)});
  CheckSteps(c, kBeta, steps, {heads, 1});
  const Dims state{steps[0], heads, dk, dv};
  DType state_type = c.in(kQuery).dtype;
  if (c.has(kPast)) {
    state_type = c.in(kPast).dtype;
    CheckDims(c, kPast, state);
  }
  c.SetOut(0, c.in(kQuery).dtype, Dims{steps[0], steps[1], dv * Dim(q_heads)});
  c.SetOut(1, state_type, state);
}

struct Sizes {
  int64_t batch, seq, q_heads, heads, dk, dv;
};
Sizes SizesOf(const OpCall& call) {
  const Shape& q = call.x(kQuery).shape();
  const int64_t q_heads = call.attrs().Int("q_num_heads", 1);
  const int64_t heads = call.attrs().Int("kv_num_heads", 1);
  return {q[0], q[1], q_heads, heads, q[2] / q_heads, call.x(kValue).shape()[2] / heads};
}

Cost AttentionCost(const OpCall& call) {
  const Sizes s = SizesOf(call);
  Cost cost = DefaultCost(call);
  cost.flops = 2 * static_cast<double>(s.batch * s.seq) * static_cast<double>(s.dk * s.dv) *
               static_cast<double>(s.q_heads + 3 * s.heads);
  return cost;
}

// State and one row of values of each head of each batch entry.
size_t Workspace(const OpCall& call) {
  const Sizes s = SizesOf(call);
  return static_cast<size_t>(s.batch * s.heads * (s.dk + 1) * s.dv) * sizeof(double);
}

template <typename T>
class Head {
 public:
  Head(const OpCall& call, const Sizes& s, int64_t b, int64_t h, double* scratch)
      : call_(call), s_(s), b_(b), h_(h), state_(scratch), value_(scratch + s.dk * s.dv) {
    rule_ = ReadRule(call.schema->name, call.attrs());
    scale_ = call.attrs().Float("scale", 0);
    if (scale_ == 0) scale_ = 1 / std::sqrt(static_cast<double>(s.dk));
  }
  void Step(int64_t t) {
    const int64_t at = b_ * s_.seq + t;
    const T* k = In(kKey) + (at * s_.heads + h_) * s_.dk;
    const T* v = In(kValue) + (at * s_.heads + h_) * s_.dv;
    if (rule_.gated) Decay(at);
    for (int64_t m = 0; m < s_.dv; ++m) value_[m] = Widen(v[m]);
    if (rule_.delta) {
      const int64_t betas = call_.x(kBeta).shape()[2];
      const double beta = Widen(In(kBeta)[at * betas + (betas == 1 ? 0 : h_)]);
      for (int64_t m = 0; m < s_.dv; ++m) {
        for (int64_t d = 0; d < s_.dk; ++d) value_[m] -= state_[d * s_.dv + m] * Widen(k[d]);
        value_[m] *= beta;
      }
    }
    for (int64_t d = 0; d < s_.dk; ++d) {
      for (int64_t m = 0; m < s_.dv; ++m) state_[d * s_.dv + m] += Widen(k[d]) * value_[m];
    }
    const int64_t group = s_.q_heads / s_.heads;
    for (int64_t q = h_ * group; q < (h_ + 1) * group; ++q) Read(at * s_.q_heads + q);
  }

 private:
  const T* In(size_t i) const { return call_.x(i).template data<T>(); }
  void Decay(int64_t at) {
    const int64_t last = call_.x(kDecay).shape()[2];
    const bool per_key = last != s_.heads;
    for (int64_t d = 0; d < s_.dk; ++d) {
      const int64_t i = per_key ? at * last + h_ * s_.dk + d : at * last + h_;
      const double factor = std::exp(Widen(In(kDecay)[i]));
      for (int64_t m = 0; m < s_.dv; ++m) state_[d * s_.dv + m] *= factor;
    }
  }
  void Read(int64_t row) {
    const T* q = In(kQuery) + row * s_.dk;
    T* out = call_.y(0).template data<T>() + row * s_.dv;
    for (int64_t m = 0; m < s_.dv; ++m) {
      double sum = 0;
      for (int64_t d = 0; d < s_.dk; ++d) sum += Widen(q[d]) * state_[d * s_.dv + m];
      out[m] = Narrow<T>(scale_ * sum);
    }
  }

  const OpCall& call_;
  const Sizes& s_;
  int64_t b_, h_;
  double* state_;
  double* value_;
  Rule rule_;
  double scale_ = 1;
};

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  const Sizes s = SizesOf(call);
  auto* const scratch = static_cast<double*>(static_cast<void*>(workspace.data()));
  const int64_t state_size = s.dk * s.dv;
  DispatchReference<kTypes>(call, call.x(kQuery).dtype(), [&]<typename T>() {
    ParallelFor(s.batch * s.heads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        double* state = scratch + row * (state_size + s.dv);
        for (int64_t i = 0; i < state_size; ++i)
          state[i] = call.has(kPast) ? ElementAsDouble(call.x(kPast), row * state_size + i) : 0;
        Head<T> head(call, s, row / s.heads, row % s.heads, state);
        for (int64_t t = 0; t < s.seq; ++t) head.Step(t);
        for (int64_t i = 0; call.has_out(1) && i < state_size; ++i)
          SetElementFromDouble(call.y(1), row * state_size + i, state[i]);
      }
    });
  });
}

WHIMBREL_REGISTER(OpSchema{
    .name = "LinearAttention",
    .since = 27,
    .inputs = {{.name = "query", .types = kTypes, .group = 1},
               {.name = "key", .types = kTypes, .group = 1},
               {.name = "value", .types = kTypes, .group = 1},
               {.name = "past_state", .types = kTypes, .optional = true},
               {.name = "decay", .types = kTypes, .optional = true, .group = 1},
               {.name = "beta", .types = kTypes, .optional = true, .group = 1}},
    .outputs = {{.name = "output", .types = kTypes, .group = 1},
                {.name = "present_state", .types = kTypes}},
    .attributes = {{.name = "chunk_size", .type = AttributeType::kInt, .note = "a hint"},
                   {.name = "kv_num_heads", .type = AttributeType::kInt, .required = true},
                   {.name = "q_num_heads", .type = AttributeType::kInt, .required = true},
                   {.name = "scale",
                    .type = AttributeType::kFloat,
                    .note = "0 (default): 1 / sqrt(key size)"},
                   {.name = "update_rule",
                    .type = AttributeType::kString,
                    .note = "linear, gated, delta, gated_delta (default)"}},
    .infer = Infer,
    .cost = AttentionCost,
    .samples =
        {"f32:2x5x24@-0.5..0.5 f32:2x5x12@-0.5..0.5 f32:2x5x8 - f32:2x5x2@-1..0 f32:2x5x2@0..1 "
         "q_num_heads=4 kv_num_heads=2 outputs=2",
         "f32:1x1x1 f32:1x1x1 f32:1x1x1 q_num_heads=1 kv_num_heads=1 update_rule=linear outputs=2",
         "f32:2x3x8 f32:2x3x8 f32:2x3x6 f32:2x2x4x3 f32:2x3x8@-1..0 q_num_heads=2 kv_num_heads=2 "
         "update_rule=gated outputs=2",
         "f32:2x3x8@-0.5..0.5 f32:2x3x8@-0.5..0.5 f32:2x3x6 f32:2x2x4x3 - f32:2x3x1@0..1 "
         "q_num_heads=2 kv_num_heads=2 update_rule=delta scale=2 outputs=2",
         "f32:0x3x8 f32:0x3x8 f32:0x3x6 q_num_heads=2 kv_num_heads=2 update_rule=linear outputs=2",
         "f32:2x0x8 f32:2x0x8 f32:2x0x6 q_num_heads=2 kv_num_heads=2 update_rule=linear outputs=2",
         "f16:2x3x8 f16:2x3x8 f16:2x3x6 f32:2x2x4x3 q_num_heads=2 kv_num_heads=2 "
         "update_rule=linear outputs=2",
         "bf16:2x3x8 bf16:2x3x8 bf16:2x3x6 q_num_heads=2 kv_num_heads=2 update_rule=linear "
         "outputs=2"},
    .matrix_op = true,
    .doc = "attention with a state instead of a cache"});
WHIMBREL_REGISTER(Kernel{
    .op = "LinearAttention", .name = "reference", .workspace = Workspace, .run = Run});

}  // namespace
}  // namespace whimbrel
