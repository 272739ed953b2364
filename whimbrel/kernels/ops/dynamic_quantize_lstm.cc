// DynamicQuantizeLSTM: LSTM whose products x W and h R are sums of 8 bit numbers: W and R are
// stored so, x and h are quantised to uint8 as DynamicQuantizeLinear does.
//
// in   X              [seq, batch, input]  f32
//      W              [dirs, input, 4 hidden]   i8 | u8, gates in the order i, o, f, c
//      R              [dirs, hidden, 4 hidden]  i8 | u8
//      B, sequence_lens, initial_h, initial_c, P  as LSTM has them; optional
//      W_scale, R_scale            [dirs] or [dirs, 4 hidden]  f32
//      W_zero_point, R_zero_point  the same, type of W and R
// attr activations, activation_alpha, activation_beta, clip, direction, hidden_size, input_forget
// out  Y              [seq, dirs, batch, hidden]
//      Y_h, Y_c       [dirs, batch, hidden]
// Source: ONNX Runtime's operator com.microsoft.DynamicQuantizeLSTM (1). One scale is taken for all
// of X, and one for the h of all batch entries at each step.

#include <fmt/format.h>

#include "whimbrel/kernels/ops/quantized.h"
#include "whimbrel/kernels/ops/recurrent.h"

namespace whimbrel {
namespace {

enum Input : size_t { kWScale = kLstmPeepholes + 1, kWZero, kRScale, kRZero };
constexpr TypeMask kFloat32 = TypeBit(DType::kFloat);

// One for each direction, or one for each gate row of each.
void CheckScales(const InferContext& c, size_t input, const Dim& dirs, const Dim& rows) {
  if (!c.in(input).dims) return;
  CheckDims(c, input, c.in(input).rank() == 1 ? Dims{dirs} : Dims{dirs, rows});
}

void Infer(InferContext& c) {
  const RnnDirection direction = ReadRnnDirection(c.schema().name, c.attrs());
  std::array<RnnActivation, 6> activations;
  ReadRnnActivations(c.schema().name, c.attrs(), kLstmFunctions,
                     std::span(activations).first(static_cast<size_t>(direction.count) * 3));
  if (!(c.attrs().Float("clip", 1) >= 0)) c.Fail("clip must not be negative");
  const Dim dirs = direction.count;
  Dim seq, batch, input, hidden;
  if (c.in(kRnnX).dims) {
    const Dims& x = *c.in(kRnnX).dims;
    if (x.size() != 3) c.Fail("X must have rank 3, is " + ToString(x));
    seq = x[0], batch = x[1], input = x[2];
  }
  if (c.in(kRnnR).dims) {
    if (c.in(kRnnR).rank() != 3) c.Fail("R must have rank 3, is " + ToString(*c.in(kRnnR).dims));
    hidden = (*c.in(kRnnR).dims)[1];
  }
  const int64_t named = c.attrs().Int("hidden_size", 1);
  if (named < 1 || named > (int64_t{1} << 31)) c.Fail(fmt::format("hidden_size is {}", named));
  if (c.attrs().Has("hidden_size") && hidden.known() && !hidden.Is(named))
    c.Fail(fmt::format("hidden_size is {}, R has {}", named, hidden.value()));
  const Dim rows = hidden * Dim(4);
  const Dims state{dirs, batch, hidden};
  CheckDims(c, kRnnW, {dirs, input, rows});
  CheckDims(c, kRnnR, {dirs, hidden, rows});
  CheckDims(c, kRnnB, {dirs, rows * Dim(2)});
  CheckDims(c, kRnnLengths, {batch});
  CheckDims(c, kRnnH, state);
  CheckDims(c, kLstmC, state);
  CheckDims(c, kLstmPeepholes, {dirs, hidden * Dim(3)});
  for (size_t i : {size_t{kWScale}, size_t{kWZero}, size_t{kRScale}, size_t{kRZero}})
    CheckScales(c, i, dirs, rows);
  c.SetOut(0, DType::kFloat, Dims{seq, dirs, batch, hidden});
  c.SetOut(1, DType::kFloat, state);
  c.SetOut(2, DType::kFloat, state);
}

RnnSizes SizesOf(const OpCall& call) {
  const Shape& x = call.x(kRnnX).shape();
  const Shape& r = call.x(kRnnR).shape();
  return {x[0], x[1], x[2], r[1], r[0], false};
}

Cost LstmCost(const OpCall& call) {
  const RnnSizes s = SizesOf(call);
  Cost cost = DefaultCost(call);
  cost.flops = 8.0 * static_cast<double>(s.dirs * s.seq * s.batch) * static_cast<double>(s.hidden) *
               static_cast<double>(s.input + s.hidden);
  return cost;
}

// Scratch of one direction: h and c of all batch entries and the products as doubles, integer sums.
struct Scratch {
  Scratch(const RnnSizes& s, std::byte* at)
      : h(static_cast<double*>(static_cast<void*>(at))),
        c(h + s.batch * s.hidden),
        products(c + s.batch * s.hidden),
        sums(static_cast<int32_t*>(static_cast<void*>(products + 4 * s.hidden))) {}
  static size_t Bytes(const RnnSizes& s) {
    const auto doubles = static_cast<size_t>((2 * s.batch + 4) * s.hidden);
    return doubles * sizeof(double) + static_cast<size_t>(4 * s.hidden) * sizeof(int32_t) + 64;
  }
  double* h;
  double* c;
  double* products;
  int32_t* sums;
};

size_t AlignedBytes(const RnnSizes& s) {
  return (Scratch::Bytes(s) + 63) / 64 * 64;
}
size_t Workspace(const OpCall& call) {
  const RnnSizes s = SizesOf(call);
  return static_cast<size_t>(s.dirs) * AlignedBytes(s);
}

// A weight matrix [depth, 4 hidden] of one direction with its scales and zero points.
template <typename Q>
class Matrix {
 public:
  Matrix(const OpCall& call, size_t weights, size_t scale, size_t zero, int64_t dir)
      : depth_(call.x(weights).shape()[1]), rows_(call.x(weights).shape()[2]) {
    q_ = call.x(weights).template data<Q>() + dir * depth_ * rows_;
    const int64_t step = call.x(scale).shape().rank() == 1 ? 1 : rows_;
    scale_ = call.x(scale).template data<float>() + dir * step;
    scale_step_ = step == 1 ? 0 : 1;
    const int64_t zero_step = call.x(zero).shape().rank() == 1 ? 1 : rows_;
    zero_ = call.x(zero).template data<Q>() + dir * zero_step;
    zero_step_ = zero_step == 1 ? 0 : 1;
  }
  // products[row] += scale * sum over k of (quantised v[k]) (q[k, row] - zero)
  template <typename V>
  void AddTo(const V* v, const DynamicRange& range, int32_t* sums, double* products) const {
    const float scale = range.scale();
    const uint8_t zero = range.zero_point();
    std::fill_n(sums, rows_, 0);
    for (int64_t k = 0; k < depth_; ++k) {
      const int32_t left = Quantize<uint8_t>(static_cast<float>(v[k]) / scale, zero) - zero;
      const Q* right = q_ + k * rows_;
      for (int64_t j = 0; j < rows_; ++j) sums[j] += left * (right[j] - zero_[j * zero_step_]);
    }
    for (int64_t j = 0; j < rows_; ++j)
      products[j] +=
          static_cast<double>(sums[j]) * static_cast<double>(scale * scale_[j * scale_step_]);
  }

 private:
  int64_t depth_, rows_;
  const Q* q_;
  const float* scale_;
  const Q* zero_;
  int64_t scale_step_, zero_step_;
};

void Start(const OpCall& call, const RnnSizes& s, int64_t dir, const Scratch& scratch) {
  const float* h = RnnOptional<float>(call, kRnnH, s.StateAt(dir, 0));
  const float* c = RnnOptional<float>(call, kLstmC, s.StateAt(dir, 0));
  for (int64_t i = 0; i < s.batch * s.hidden; ++i) {
    scratch.h[i] = h == nullptr ? 0 : static_cast<double>(h[i]);
    scratch.c[i] = c == nullptr ? 0 : static_cast<double>(c[i]);
  }
}

template <typename Q>
void RunDirection(const OpCall& call, const RnnSizes& s, int64_t dir, const DynamicRange& x_range,
                  const Scratch& scratch) {
  const RnnDirection direction = ReadRnnDirection(call.schema->name, call.attrs());
  const bool reversed = direction.first_reversed || dir == 1;
  const Matrix<Q> w(call, kRnnW, kWScale, kWZero, dir), r(call, kRnnR, kRScale, kRZero, dir);
  const auto weights = LstmWeightsOf<float>(call, dir, s.dirs, s.hidden);
  const float* x = call.x(kRnnX).data<float>();
  Start(call, s, dir, scratch);
  for (int64_t i = 0; i < s.seq; ++i) {
    DynamicRange h_range;
    for (int64_t entry = 0; entry < s.batch; ++entry) {
      const double* h = scratch.h + entry * s.hidden;
      if (i >= RnnSteps(call, s, entry)) continue;
      for (int64_t k = 0; k < s.hidden; ++k) h_range.Add(static_cast<float>(h[k]));
    }
    for (int64_t entry = 0; entry < s.batch; ++entry) {
      const int64_t steps = RnnSteps(call, s, entry);
      if (i >= steps) {
        StoreRnn<float>(call, 0, s.OutputAt(i, dir, entry), nullptr, s.hidden);
        continue;
      }
      const int64_t step = reversed ? steps - 1 - i : i;
      double* h = scratch.h + entry * s.hidden;
      std::fill_n(scratch.products, 4 * s.hidden, 0.0);
      w.AddTo(x + s.InputAt(step, entry), x_range, scratch.sums, scratch.products);
      r.AddTo(h, h_range, scratch.sums, scratch.products);
      LstmStep(weights, scratch.products, s.hidden, h, scratch.c + entry * s.hidden);
      StoreRnn<float>(call, 0, s.OutputAt(step, dir, entry), h, s.hidden);
    }
  }
  StoreRnn<float>(call, 1, s.StateAt(dir, 0), scratch.h, s.batch * s.hidden);
  StoreRnn<float>(call, 2, s.StateAt(dir, 0), scratch.c, s.batch * s.hidden);
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  const RnnSizes s = SizesOf(call);
  CheckRnnLengths(call, s);
  DynamicRange x_range;
  for (float v : call.x(kRnnX).values<float>()) x_range.Add(v);
  const auto bytes = static_cast<int64_t>(AlignedBytes(s));
  DispatchReference<kQuantized8>(call, call.x(kRnnW).dtype(), [&]<typename Q>() {
    ParallelFor(s.dirs, 1, [&](int64_t begin, int64_t end) {
      for (int64_t dir = begin; dir < end; ++dir)
        RunDirection<Q>(call, s, dir, x_range, Scratch(s, workspace.data() + dir * bytes));
    });
  });
}

OpSchema Schema() {
  std::vector<Formal> inputs = RnnInputs(kFloat32);
  inputs[kRnnW] = {.name = "W", .types = kQuantized8, .group = 2};
  inputs[kRnnR] = {.name = "R", .types = kQuantized8, .group = 2};
  inputs.push_back({.name = "initial_c", .types = kFloat32, .optional = true});
  inputs.push_back({.name = "P", .types = kFloat32, .optional = true});
  inputs.push_back({.name = "W_scale", .types = kFloat32});
  inputs.push_back({.name = "W_zero_point", .types = kQuantized8, .group = 2});
  inputs.push_back({.name = "R_scale", .types = kFloat32});
  inputs.push_back({.name = "R_zero_point", .types = kQuantized8, .group = 2});
  std::vector<AttributeSpec> attributes = RnnAttributes(1, "default Sigmoid, Tanh, Tanh");
  attributes.push_back(
      {.name = "input_forget", .type = AttributeType::kInt, .note = "1: the forget gate is 1 - i"});
  return {
      .name = "DynamicQuantizeLSTM",
      .domain = "com.microsoft",
      .inputs = std::move(inputs),
      .outputs = {{.name = "Y", .types = kFloat32, .optional = true},
                  {.name = "Y_h", .types = kFloat32, .optional = true},
                  {.name = "Y_c", .types = kFloat32, .optional = true}},
      .attributes = std::move(attributes),
      .infer = Infer,
      .cost = LstmCost,
      .samples =
          {"f32:9x1x16 u8:2x16x48@0..255! u8:2x12x48@0..255! f32:2x96! - - - - f32:2@0.01..0.02! "
           "u8:2@120..136! f32:2@0.01..0.02! u8:2@120..136! direction=bidirectional "
           "hidden_size=12 outputs=3",
           "f32:1x1x1 i8:1x1x4! i8:1x1x4! - - - - - f32:1={0.1}! i8:1={0}! f32:1={0.1}! "
           "i8:1={0}!",
           "f32:5x2x3 i8:1x3x8@-99..99! i8:1x2x8@-99..99! f32:1x16! i32:2={5,3} f32:1x2x2 "
           "f32:1x2x2 f32:1x6! f32:1x8@0.01..0.02! i8:1x8@-3..3! f32:1x8@0.01..0.02! "
           "i8:1x8@-3..3! direction=reverse outputs=3",
           "f32:5x2x3 i8:1x3x8@-99..99! i8:1x2x8@-99..99! - - - - - f32:1={0.02}! i8:1={0}! "
           "f32:1={0.02}! i8:1={0}! clip=0.5 input_forget=1 outputs=3",
           "f32:0x2x3 i8:1x3x8! i8:1x2x8! - - - - - f32:1={0.02}! i8:1={0}! f32:1={0.02}! "
           "i8:1={0}! outputs=3"},
      .matrix_op = true,
      .doc = "LSTM with 8 bit weights"};
}

WHIMBREL_REGISTER(Schema());
WHIMBREL_REGISTER(Kernel{.op = "DynamicQuantizeLSTM",
                         .domain = "com.microsoft",
                         .name = "reference",
                         .workspace = Workspace,
                         .run = Run});

}  // namespace
}  // namespace whimbrel
