// RNN: h = F(x W + h R + b), step by step and direction by direction.
//
// in   X              [seq, batch, input]  f32 | f64 | f16, from opset 22 also bf16
//      W              [dirs, hidden, input]
//      R              [dirs, hidden, hidden]
//      B              [dirs, 2 hidden], optional: W's part, then R's
//      sequence_lens  [batch] i32, optional: steps of each batch entry; Y is 0 behind them
//      initial_h      [dirs, batch, hidden], optional, default 0
// attr activations (Tanh for each direction), activation_alpha, activation_beta, clip (bounds the
//      input of F), direction, hidden_size, layout (from 14; 1: batch first)
// out  Y              [seq, dirs, batch, hidden]   layout 1: [batch, seq, dirs, hidden]
//      Y_h            [dirs, batch, hidden]        layout 1: [batch, dirs, hidden]
// Source: ONNX operator RNN (7, 14, 22).

#include "whimbrel/kernels/ops/recurrent.h"

namespace whimbrel {
namespace {

constexpr std::array<RnnFunction, 1> kFunctions{RnnFunction::kTanh};

void Infer(InferContext& c) {
  InferRnn(c, 1, kFunctions);
}
Cost LayerCost(const OpCall& call) {
  return RnnCost(call, 1);
}
// h before and after the step.
int64_t Doubles(const OpCall& call) {
  return 2 * RnnSizesOf(call).hidden;
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
        bias_(RnnOptional<T>(call, kRnnB, dir * 2 * sizes.hidden)),
        h_(scratch),
        next_(h_ + hidden_),
        clip_(call.attrs().Float("clip", 0)) {
    std::array<RnnActivation, 2> all;
    ReadRnnActivations(call.schema->name, call.attrs(), kFunctions,
                       std::span(all).first(static_cast<size_t>(sizes.dirs)));
    function_ = all[static_cast<size_t>(dir)];
  }
  void Start(int64_t state) {
    const T* h = RnnOptional<T>(call_, kRnnH, state);
    for (int64_t i = 0; i < hidden_; ++i) h_[i] = h == nullptr ? 0 : Widen(h[i]);
  }
  void Step(const ReadAs<T>* x) {
    for (int64_t i = 0; i < hidden_; ++i) {
      double sum = RnnDot(x, w_ + i * input_, input_) + RnnDot(h_, r_ + i * hidden_, hidden_);
      if (bias_ != nullptr) sum += Widen(bias_[i]) + Widen(bias_[hidden_ + i]);
      next_[i] = function_(RnnClip(sum, clip_));
    }
    std::swap(h_, next_);
  }
  const double* h() const { return h_; }
  void Finish(int64_t /*state*/) {}

 private:
  const OpCall& call_;
  int64_t input_, hidden_;
  const ReadAs<T>* w_;
  const ReadAs<T>* r_;
  const T* bias_;
  double* h_;
  double* next_;
  double clip_;
  RnnActivation function_;
};

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  DispatchReference<kFloatTypes>(call, call.x(kRnnX).dtype(), [&]<typename T>() {
    RunRnn<T, Cell<T>>(call, workspace, Doubles(call));
  });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return {.name = "RNN",
          .since = since,
          .until = until,
          .inputs = RnnInputs(types),
          .outputs = {{.name = "Y", .types = types, .optional = true, .group = 1},
                      {.name = "Y_h", .types = types, .optional = true, .group = 1}},
          .attributes = RnnAttributes(since, "default Tanh"),
          .infer = Infer,
          .cost = LayerCost,
          .samples = std::move(samples),
          .matrix_op = true,
          .doc = "one simple recurrent layer"};
}

constexpr TypeMask kOldTypes = kFloatTypes & ~TypeBit(DType::kBFloat16);

WHIMBREL_REGISTER(
    Schema(7, 14, kOldTypes,
           {"f32:5x2x3 f32:1x4x3@-1..1! f32:1x4x4@-1..1! f32:1x8! outputs=2 hidden_size=4"}));
WHIMBREL_REGISTER(Schema(
    14, 22, kOldTypes,
    {"f32:20x1x32 f32:2x24x32@-0.3..0.3! f32:2x24x24@-0.3..0.3! f32:2x48@-0.3..0.3! "
     "direction=bidirectional hidden_size=24 outputs=2",
     "f32:1x1x1 f32:1x1x1! f32:1x1x1!",
     "f32:7x3x5 f32:2x3x5! f32:2x3x3! f32:2x6! i32:3={7,0,4} f32:2x3x3 direction=bidirectional "
     "activations=Relu,ScaledTanh activation_alpha=0.5 activation_beta=0.7 outputs=2",
     "f32:5x2x3 f32:1x2x3! f32:1x2x2! f32:1x4! clip=0.5 direction=reverse outputs=2",
     "f32:2x5x3 f32:1x2x3! f32:1x2x2! f32:1x4! - f32:2x1x2 layout=1 outputs=2",
     "f32:0x2x3 f32:1x2x3! f32:1x2x2! outputs=2", "f64:5x2x3 f64:1x2x3! f64:1x2x2! outputs=2",
     "f16:5x2x3 f16:1x2x3! f16:1x2x2! f16:1x4! outputs=2"}));
WHIMBREL_REGISTER(Schema(22, INT_MAX, kFloatTypes,
                         {"f32:5x2x3 f32:1x2x3! f32:1x2x2! f32:1x4! outputs=2",
                          "bf16:5x2x3 bf16:1x2x3! bf16:1x2x2! bf16:1x4! outputs=2"}));
WHIMBREL_REGISTER(Kernel{.op = "RNN", .name = "reference", .workspace = Workspace, .run = Run});

}  // namespace
}  // namespace whimbrel
