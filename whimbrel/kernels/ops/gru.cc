// GRU: z, r = F(x W + h R + b); H = G(x Wh + (r h) Rh + b); h = (1 - z) H + z h, step by step and
// direction by direction.
//
// in   X              [seq, batch, input]  f32 | f64 | f16, from opset 22 also bf16
//      W              [dirs, 3 hidden, input]   gates in the order z, r, h
//      R              [dirs, 3 hidden, hidden]
//      B              [dirs, 6 hidden], optional: W's part, then R's
//      sequence_lens  [batch] i32, optional: steps of each batch entry; Y is 0 behind them
//      initial_h      [dirs, batch, hidden], optional, default 0
// attr activations (Sigmoid, Tanh for each direction), activation_alpha, activation_beta, clip
//      (bounds the input of F and G), direction, hidden_size, layout (from 14; 1: batch first),
//      linear_before_reset (1: H = G(x Wh + bw + r (h Rh + br)))
// out  Y              [seq, dirs, batch, hidden]   layout 1: [batch, seq, dirs, hidden]
//      Y_h            [dirs, batch, hidden]        layout 1: [batch, dirs, hidden]
// Source: ONNX operator GRU (7, 14, 22).

#include "whimbrel/kernels/ops/recurrent.h"

namespace whimbrel {
namespace {

constexpr int kGates = 3;
constexpr std::array<RnnFunction, 2> kFunctions{RnnFunction::kSigmoid, RnnFunction::kTanh};

void Infer(InferContext& c) {
  InferRnn(c, kGates, kFunctions);
}
Cost GruCost(const OpCall& call) {
  return RnnCost(call, kGates);
}
// h, the two gates, and the candidate.
int64_t Doubles(const OpCall& call) {
  return 4 * RnnSizesOf(call).hidden;
}
size_t Workspace(const OpCall& call) {
  return RnnWorkspace(call, Doubles(call));
}

// One direction of one batch entry.
template <typename T>
class Cell {
 public:
  Cell(const OpCall& call, const RnnSizes& sizes, int64_t dir, const ReadAs<T>* w,
       const ReadAs<T>* r, double* scratch)
      : call_(call),
        input_(sizes.input),
        hidden_(sizes.hidden),
        w_(w),
        r_(r),
        bias_(RnnOptional<T>(call, kRnnB, dir * 2 * kGates * sizes.hidden)),
        h_(scratch),
        update_(h_ + hidden_),
        reset_(update_ + hidden_),
        candidate_(reset_ + hidden_),
        clip_(call.attrs().Float("clip", 0)),
        linear_before_reset_(call.attrs().Int("linear_before_reset", 0) != 0) {
    std::array<RnnActivation, 4> all;
    ReadRnnActivations(call.schema->name, call.attrs(), kFunctions,
                       std::span(all).first(static_cast<size_t>(sizes.dirs) * 2));
    std::copy_n(all.begin() + 2 * dir, 2, functions_.begin());
  }
  void Start(int64_t state) {
    const T* h = RnnOptional<T>(call_, kRnnH, state);
    for (int64_t i = 0; i < hidden_; ++i) h_[i] = h == nullptr ? 0 : Widen(h[i]);
  }
  void Step(const ReadAs<T>* x) {
    for (int64_t i = 0; i < hidden_; ++i) {
      update_[i] = Gate(0, i, x);
      reset_[i] = Gate(1, i, x);
    }
    for (int64_t i = 0; i < hidden_; ++i) candidate_[i] = Candidate(i, x);
    for (int64_t i = 0; i < hidden_; ++i)
      h_[i] = (1 - update_[i]) * candidate_[i] + update_[i] * h_[i];
  }
  const double* h() const { return h_; }
  void Finish(int64_t /*state*/) {}

 private:
  double Bias(int64_t row) const { return bias_ == nullptr ? 0 : Widen(bias_[row]); }
  double FromInput(int64_t row, const ReadAs<T>* x) const {
    return RnnDot(x, w_ + row * input_, input_) + Bias(row);
  }
  double Gate(int64_t gate, int64_t i, const ReadAs<T>* x) const {
    const int64_t row = gate * hidden_ + i;
    const double sum =
        FromInput(row, x) + RnnDot(h_, r_ + row * hidden_, hidden_) + Bias(kGates * hidden_ + row);
    return functions_[0](RnnClip(sum, clip_));
  }
  double Candidate(int64_t i, const ReadAs<T>* x) const {
    const int64_t row = 2 * hidden_ + i;
    const ReadAs<T>* r = r_ + row * hidden_;
    double sum = FromInput(row, x);
    const double bias = Bias(kGates * hidden_ + row);
    if (linear_before_reset_) {
      sum += reset_[i] * (RnnDot(h_, r, hidden_) + bias);
    } else {
      for (int64_t k = 0; k < hidden_; ++k) sum += reset_[k] * h_[k] * static_cast<double>(r[k]);
      sum += bias;
    }
    return functions_[1](RnnClip(sum, clip_));
  }

  const OpCall& call_;
  int64_t input_, hidden_;
  const ReadAs<T>* w_;
  const ReadAs<T>* r_;
  const T* bias_;
  double* h_;
  double* update_;
  double* reset_;
  double* candidate_;
  double clip_;
  bool linear_before_reset_;
  std::array<RnnActivation, 2> functions_{};
};

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  DispatchReference<kFloatTypes>(call, call.x(kRnnX).dtype(), [&]<typename T>() {
    RunRnn<T, Cell<T>>(call, workspace, Doubles(call));
  });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema s{.name = "GRU",
             .since = since,
             .until = until,
             .inputs = RnnInputs(types),
             .outputs = {{.name = "Y", .types = types, .optional = true, .group = 1},
                         {.name = "Y_h", .types = types, .optional = true, .group = 1}},
             .attributes = RnnAttributes(since, "default Sigmoid, Tanh"),
             .infer = Infer,
             .cost = GruCost,
             .samples = std::move(samples),
             .matrix_op = true,
             .doc = "one layer of gated recurrent units"};
  s.attributes.push_back({.name = "linear_before_reset",
                          .type = AttributeType::kInt,
                          .note = "1: the reset gate scales the product"});
  return s;
}

constexpr TypeMask kOldTypes = kFloatTypes & ~TypeBit(DType::kBFloat16);

WHIMBREL_REGISTER(
    Schema(7, 14, kOldTypes,
           {"f32:5x2x3 f32:1x12x3@-1..1! f32:1x12x4@-1..1! f32:1x24! outputs=2 hidden_size=4",
            "f32:4x2x3 f32:2x6x3! f32:2x6x2! direction=bidirectional outputs=2 hidden_size=2"}));
WHIMBREL_REGISTER(Schema(
    14, 22, kOldTypes,
    {"f32:20x1x32 f32:2x72x32@-0.3..0.3! f32:2x72x24@-0.3..0.3! f32:2x144@-0.3..0.3! "
     "direction=bidirectional hidden_size=24 outputs=2 linear_before_reset=1",
     "f32:1x1x1 f32:1x3x1! f32:1x3x1! f32:1x6! hidden_size=1",
     "f32:7x3x5 f32:1x9x5! f32:1x9x3! f32:1x18! - f32:1x3x3 direction=reverse hidden_size=3 "
     "outputs=2",
     "f32:7x3x5 f32:2x9x5! f32:2x9x3! f32:2x18! i32:3={7,2,4} f32:2x3x3 direction=bidirectional "
     "outputs=2",
     "f32:5x2x3 f32:1x6x3! f32:1x6x2! f32:1x12! i32:2={3,0} outputs=2 linear_before_reset=1",
     "f32:5x2x3 f32:1x6x3! f32:1x6x2! f32:1x12! clip=0.5 outputs=2",
     "f32:5x2x3 f32:1x6x3! f32:1x6x2! f32:1x12! activations=HardSigmoid,LeakyRelu "
     "activation_alpha=0.3,0.1 activation_beta=0.4 outputs=2",
     "f32:2x5x3 f32:2x6x3! f32:2x6x2! f32:2x12! - f32:2x2x2 layout=1 direction=bidirectional "
     "outputs=2",
     "f32:0x2x3 f32:1x6x3! f32:1x6x2! outputs=2", "f64:5x2x3 f64:1x6x3! f64:1x6x2! outputs=2",
     "f16:5x2x3 f16:1x6x3! f16:1x6x2! f16:1x12! outputs=2"}));
WHIMBREL_REGISTER(Schema(22, INT_MAX, kFloatTypes,
                         {"f32:5x2x3 f32:1x6x3! f32:1x6x2! f32:1x12! outputs=2",
                          "bf16:5x2x3 bf16:1x6x3! bf16:1x6x2! bf16:1x12! outputs=2"}));
WHIMBREL_REGISTER(Kernel{.op = "GRU", .name = "reference", .workspace = Workspace, .run = Run});

}  // namespace
}  // namespace whimbrel
