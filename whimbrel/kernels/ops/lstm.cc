// LSTM: i, o, f = F(x W + h R + P c + b); C = f c + i G(x Wc + h Rc + bc); H = o Hf(C), step by
// step and direction by direction.
//
// in   X              [seq, batch, input]  f32 | f64 | f16, from opset 22 also bf16
//      W              [dirs, 4 hidden, input]   gates in the order i, o, f, c
//      R              [dirs, 4 hidden, hidden]
//      B              [dirs, 8 hidden], optional: W's part, then R's
//      sequence_lens  [batch] i32, optional: steps of each batch entry; Y is 0 behind them
//      initial_h, initial_c  [dirs, batch, hidden], optional, default 0
//      P              [dirs, 3 hidden], optional: peepholes i, o (of the new C), f
// attr activations (Sigmoid, Tanh, Tanh for each direction), activation_alpha, activation_beta,
// clip (bounds
//      the input of F and G), direction, hidden_size, input_forget (f = 1 - i), layout (from 14; 1:
//      batch first)
// out  Y              [seq, dirs, batch, hidden]   layout 1: [batch, seq, dirs, hidden]
//      Y_h, Y_c       [dirs, batch, hidden]        layout 1: [batch, dirs, hidden]
// Source: ONNX operator LSTM (7, 14, 22).

#include "whimbrel/kernels/ops/recurrent.h"

namespace whimbrel {
namespace {

constexpr int kGates = 4;

void Infer(InferContext& c) {
  const RnnShapes shapes = InferRnn(c, kGates, kLstmFunctions);
  CheckDims(c, kLstmC, shapes.state);
  CheckDims(c, kLstmPeepholes, {shapes.dirs, shapes.hidden * Dim(3)});
  c.SetOut(2, c.in(kRnnX).dtype, shapes.state);
}

Cost LstmCost(const OpCall& call) {
  return RnnCost(call, kGates);
}
// h, c and the four gates.
int64_t Doubles(const OpCall& call) {
  return 6 * RnnSizesOf(call).hidden;
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
        s_(sizes),
        w_(w),
        r_(r),
        h_(scratch),
        c_(h_ + s_.hidden),
        gates_(c_ + s_.hidden),
        weights_(LstmWeightsOf<T>(call, dir, sizes.dirs, sizes.hidden)) {}

  void Start(int64_t state) {
    const T* h = RnnOptional<T>(call_, kRnnH, state);
    const T* c = RnnOptional<T>(call_, kLstmC, state);
    for (int64_t i = 0; i < s_.hidden; ++i) {
      h_[i] = h == nullptr ? 0 : Widen(h[i]);
      c_[i] = c == nullptr ? 0 : Widen(c[i]);
    }
  }
  void Step(const ReadAs<T>* x) {
    const int64_t n = s_.hidden;
    for (int64_t g = 0; g < kGates * n; ++g)
      gates_[g] = RnnDot(x, w_ + g * s_.input, s_.input) + RnnDot(h_, r_ + g * n, n);
    LstmStep(weights_, gates_, n, h_, c_);
  }
  const double* h() const { return h_; }
  void Finish(int64_t state) { StoreRnn<T>(call_, 2, state, c_, s_.hidden); }

 private:
  const OpCall& call_;
  const RnnSizes& s_;
  const ReadAs<T>* w_;
  const ReadAs<T>* r_;
  double* h_;
  double* c_;
  double* gates_;
  LstmWeights<T> weights_;
};

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  DispatchReference<kFloatTypes>(call, call.x(kRnnX).dtype(), [&]<typename T>() {
    RunRnn<T, Cell<T>>(call, workspace, Doubles(call));
  });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  const auto optional = [types](std::string_view name) {
    return Formal{.name = name, .types = types, .optional = true, .group = 1};
  };
  OpSchema s{
      .name = "LSTM",
      .since = since,
      .until = until,
      .inputs = RnnInputs(types),
      .outputs = {optional("Y"), optional("Y_h"), optional("Y_c")},
      .attributes = RnnAttributes(since, "default Sigmoid, Tanh, Tanh"),
      .infer = Infer,
      .cost = LstmCost,
      .samples = std::move(samples),
      .matrix_op = true,
      .doc = "one layer of long short-term memory",
  };
  s.inputs.push_back(optional("initial_c"));
  s.inputs.push_back(optional("P"));
  s.attributes.push_back(
      {.name = "input_forget", .type = AttributeType::kInt, .note = "1: the forget gate is 1 - i"});
  return s;
}

constexpr TypeMask kOldTypes = kFloatTypes & ~TypeBit(DType::kBFloat16);

WHIMBREL_REGISTER(
    Schema(7, 14, kOldTypes,
           {"f32:5x2x3 f32:1x16x3@-1..1! f32:1x16x4@-1..1! f32:1x32! outputs=3 hidden_size=4",
            "f32:4x2x3 f32:2x8x3! f32:2x8x2! direction=bidirectional outputs=3 hidden_size=2"}));
WHIMBREL_REGISTER(Schema(
    14, 22, kOldTypes,
    {"f32:20x1x32 f32:2x96x32@-0.3..0.3! f32:2x96x24@-0.3..0.3! f32:2x192@-0.3..0.3! "
     "direction=bidirectional hidden_size=24 outputs=3",
     "f32:1x1x1 f32:1x4x1! f32:1x4x1! f32:1x8! hidden_size=1",
     "f32:7x3x5 f32:1x12x5! f32:1x12x3! hidden_size=3 outputs=3",
     "f32:7x3x5 f32:1x12x5! f32:1x12x3! f32:1x24! - f32:1x3x3 f32:1x3x3 direction=reverse "
     "hidden_size=3 outputs=3",
     "f32:7x3x5 f32:2x12x5! f32:2x12x3! f32:2x24! i32:3={7,2,4} f32:2x3x3 f32:2x3x3 f32:2x9! "
     "direction=bidirectional "
     "hidden_size=3 outputs=3",
     "f32:5x2x3 f32:1x8x3! f32:1x8x2! f32:1x16! i32:2={3,5} direction=reverse hidden_size=2 "
     "outputs=3",
     "f32:5x2x3 f32:1x8x3! f32:1x8x2! f32:1x16! - - - f32:1x6! hidden_size=2 outputs=2",
     "f32:5x2x3 f32:1x8x3! f32:1x8x2! f32:1x16! hidden_size=2 clip=0.5 outputs=3",
     "f32:5x2x3 f32:1x8x3! f32:1x8x2! f32:1x16! hidden_size=2 input_forget=1 outputs=3",
     "f32:5x2x3 f32:1x8x3! f32:1x8x2! f32:1x16! hidden_size=2 "
     "activations=HardSigmoid,LeakyRelu,Softsign "
     "activation_alpha=0.3,0.1 activation_beta=0.4 outputs=3",
     "f32:5x2x3 f32:2x8x3! f32:2x8x2! f32:2x16! hidden_size=2 direction=bidirectional "
     "activations=Sigmoid,Tanh,Relu,Sigmoid,ScaledTanh,Softplus activation_alpha=0.7 "
     "activation_beta=0.9 outputs=3",
     "f32:5x2x3 f32:1x8x3! f32:1x8x2! hidden_size=2 activations=Sigmoid,Elu,ThresholdedRelu "
     "activation_alpha=1,0.1 "
     "outputs=3",
     "f32:2x5x3 f32:2x8x3! f32:2x8x2! f32:2x16! - f32:2x2x2 f32:2x2x2 layout=1 hidden_size=2 "
     "direction=bidirectional outputs=3",
     "f32:0x2x3 f32:1x8x3! f32:1x8x2! hidden_size=2 outputs=1", "f32:5x2x3 f32:1x8x3! f32:1x8x2!",
     "f32:40x1x96 f32:1x256x96@-0.2..0.2! f32:1x256x64@-0.2..0.2! f32:1x512@-0.2..0.2! "
     "hidden_size=64",
     "f64:5x2x3 f64:1x8x3! f64:1x8x2! f64:1x16! hidden_size=2 outputs=3",
     "f16:5x2x3 f16:1x8x3! f16:1x8x2! f16:1x16! hidden_size=2 outputs=3"}));
WHIMBREL_REGISTER(
    Schema(22, INT_MAX, kFloatTypes,
           {"f32:5x2x3 f32:1x8x3! f32:1x8x2! f32:1x16! hidden_size=2 outputs=3",
            "bf16:5x2x3 bf16:1x8x3! bf16:1x8x2! bf16:1x16! hidden_size=2 outputs=3"}));
WHIMBREL_REGISTER(Kernel{.op = "LSTM", .name = "reference", .workspace = Workspace, .run = Run});

}  // namespace
}  // namespace whimbrel
