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

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "whimbrel/kernels/ops/rnn_activation.h"
#include "whimbrel/kernels/ops/widen.h"

namespace whimbrel {
namespace {

enum Input : size_t { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kPeepholes };
constexpr std::array<RnnFunction, 3> kDefaults{RnnFunction::kSigmoid, RnnFunction::kTanh,
                                               RnnFunction::kTanh};

struct Direction {
  int count = 1;
  bool first_reversed = false;
};

Direction ReadDirection(std::string_view op, const Attributes& attributes) {
  const std::string_view text = attributes.String("direction", "forward");
  if (text == "forward") return {1, false};
  if (text == "reverse") return {1, true};
  if (text == "bidirectional") return {2, false};
  throw Error(Code::kInvalidData, fmt::format("{}: direction \"{}\" is not known", op, text),
              "it is forward, reverse or bidirectional");
}

void CheckDims(const InferContext& c, size_t input, const Dims& want) {
  if (!c.has(input) || !c.in(input).dims) return;
  const Dims& have = *c.in(input).dims;
  bool fits = have.size() == want.size();
  for (size_t i = 0; fits && i < want.size(); ++i) {
    fits = !have[i].known() || !want[i].known() || have[i].Is(want[i].value());
  }
  if (!fits) {
    c.Fail(fmt::format("{} must be {}, is {}", c.schema().inputs[input].name, ToString(want),
                       ToString(have)));
  }
}

Dim HiddenSize(const InferContext& c) {
  if (c.attrs().Has("hidden_size")) {
    const int64_t hidden = c.attrs().Int("hidden_size", 0);
    if (hidden < 1 || hidden > (int64_t{1} << 31)) c.Fail(fmt::format("hidden_size is {}", hidden));
    return hidden;
  }
  if (c.in(kR).dims && c.in(kR).dims->size() == 3) return (*c.in(kR).dims)[2];
  return Dim();
}

void Infer(InferContext& c) {
  const Direction direction = ReadDirection(c.schema().name, c.attrs());
  std::array<RnnActivation, 6> activations;
  ReadRnnActivations(c.schema().name, c.attrs(), kDefaults,
                     std::span(activations).first(static_cast<size_t>(direction.count) * 3));
  const int64_t layout = c.attrs().Int("layout", 0);
  if (layout != 0 && layout != 1) c.Fail(fmt::format("layout is 0 or 1, is {}", layout));
  const double clip = c.attrs().Float("clip", 1);
  if (!(clip >= 0)) c.Fail(fmt::format("clip must not be negative, is {}", clip));
  const Dim dirs = direction.count, hidden = HiddenSize(c);
  Dim seq, batch, input;
  if (c.in(kX).dims) {
    const Dims& x = *c.in(kX).dims;
    if (x.size() != 3) c.Fail("X must have rank 3, is " + ToString(x));
    seq = x[layout == 1 ? 1 : 0];
    batch = x[layout == 1 ? 0 : 1];
    input = x[2];
  }
  const Dims state = layout == 1 ? Dims{batch, dirs, hidden} : Dims{dirs, batch, hidden};
  CheckDims(c, kW, {dirs, hidden * Dim(4), input});
  CheckDims(c, kR, {dirs, hidden * Dim(4), hidden});
  CheckDims(c, kB, {dirs, hidden * Dim(8)});
  CheckDims(c, kLengths, {batch});
  CheckDims(c, kInitialH, state);
  CheckDims(c, kInitialC, state);
  CheckDims(c, kPeepholes, {dirs, hidden * Dim(3)});
  const DType type = c.in(kX).dtype;
  c.SetOut(0, type, layout == 1 ? Dims{batch, seq, dirs, hidden} : Dims{seq, dirs, batch, hidden});
  c.SetOut(1, type, state);
  c.SetOut(2, type, state);
}

struct Sizes {
  int64_t seq, batch, input, hidden, dirs;
  bool batch_first;

  int64_t StateAt(int64_t dir, int64_t entry) const {
    return (batch_first ? entry * dirs + dir : dir * batch + entry) * hidden;
  }
  int64_t InputAt(int64_t step, int64_t entry) const {
    return (batch_first ? entry * seq + step : step * batch + entry) * input;
  }
  int64_t OutputAt(int64_t step, int64_t dir, int64_t entry) const {
    return (batch_first ? (entry * seq + step) * dirs + dir : (step * dirs + dir) * batch + entry) *
           hidden;
  }
};

Sizes SizesOf(const OpCall& call) {
  const Shape& x = call.x(kX).shape();
  const Shape& r = call.x(kR).shape();
  const bool batch_first = call.attrs().Int("layout", 0) == 1;
  return {x[batch_first ? 1 : 0], x[batch_first ? 0 : 1], x[2], r[2], r[0], batch_first};
}

Cost LstmCost(const OpCall& call) {
  const Sizes s = SizesOf(call);
  Cost cost = DefaultCost(call);
  cost.flops = 8.0 * static_cast<double>(s.dirs * s.seq * s.batch) * static_cast<double>(s.hidden) *
               static_cast<double>(s.input + s.hidden);
  return cost;
}

// Doubles of scratch for one batch entry of one direction: h, c and the four gates.
int64_t ScratchPerEntry(const Sizes& s) {
  return 6 * s.hidden;
}

size_t Workspace(const OpCall& call) {
  const Sizes s = SizesOf(call);
  return WidenedBytes(call.x(kX)) + WidenedBytes(call.x(kW)) + WidenedBytes(call.x(kR)) +
         static_cast<size_t>(s.dirs * s.batch * ScratchPerEntry(s)) * sizeof(double);
}

// Steps of batch entry `entry`; all were checked before the loops.
int64_t Steps(const OpCall& call, const Sizes& s, int64_t entry) {
  return call.has(kLengths) ? call.x(kLengths).data<int32_t>()[entry] : s.seq;
}

void CheckLengths(const OpCall& call, const Sizes& s) {
  for (int64_t b = 0; call.has(kLengths) && b < s.batch; ++b) {
    const int64_t steps = Steps(call, s, b);
    if (steps >= 0 && steps <= s.seq) continue;
    throw Error(Code::kInvalidData,
                fmt::format("{}: sequence_lens[{}] is {}, the sequence has {} steps",
                            call.schema->name, b, steps, s.seq));
  }
}

template <typename R>
double Dot(const R* a, const R* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// One direction of one batch entry.
template <typename T>
class Cell {
 public:
  Cell(const OpCall& call, const Sizes& sizes, int64_t dir, const ReadAs<T>* w, const ReadAs<T>* r,
       double* scratch)
      : s_(sizes),
        w_(w + dir * 4 * s_.hidden * s_.input),
        r_(r + dir * 4 * s_.hidden * s_.hidden),
        h_(scratch),
        c_(h_ + s_.hidden),
        gates_(c_ + s_.hidden),
        clip_(call.attrs().Float("clip", -1)),
        coupled_(call.attrs().Int("input_forget", 0) != 0) {
    const auto at = [&](size_t input, int64_t step) {
      return call.has(input) ? call.x(input).template data<T>() + step : nullptr;
    };
    bias_ = at(kB, dir * 8 * s_.hidden);
    peepholes_ = at(kPeepholes, dir * 3 * s_.hidden);
    std::array<RnnActivation, 6> all;
    ReadRnnActivations(call.schema->name, call.attrs(), kDefaults,
                       std::span(all).first(static_cast<size_t>(s_.dirs) * 3));
    std::copy_n(all.begin() + 3 * dir, 3, functions_.begin());
  }

  void Start(const T* h, const T* c) {
    for (int64_t i = 0; i < s_.hidden; ++i) {
      h_[i] = h == nullptr ? 0 : Widen(h[i]);
      c_[i] = c == nullptr ? 0 : Widen(c[i]);
    }
  }
  void Step(const ReadAs<T>* x) {
    const int64_t n = s_.hidden;
    for (int64_t g = 0; g < 4 * n; ++g) {
      double sum = Dot(x, w_ + g * s_.input, s_.input);
      const ReadAs<T>* row = r_ + g * n;
      for (int64_t k = 0; k < n; ++k) sum += h_[k] * static_cast<double>(row[k]);
      if (bias_ != nullptr) sum += Widen(bias_[g]) + Widen(bias_[4 * n + g]);
      gates_[g] = sum;
    }
    for (int64_t i = 0; i < n; ++i) {
      const double in = functions_[0](Clipped(gates_[i] + Peep(0, i, c_[i])));
      const double forget =
          coupled_ ? 1 - in : functions_[0](Clipped(gates_[2 * n + i] + Peep(2, i, c_[i])));
      const double candidate = functions_[1](Clipped(gates_[3 * n + i]));
      c_[i] = forget * c_[i] + in * candidate;
      const double out = functions_[0](Clipped(gates_[n + i] + Peep(1, i, c_[i])));
      h_[i] = out * functions_[2](c_[i]);
    }
  }
  const double* h() const { return h_; }
  const double* c() const { return c_; }

 private:
  double Clipped(double x) const { return clip_ > 0 ? std::max(-clip_, std::min(clip_, x)) : x; }
  double Peep(int64_t gate, int64_t i, double c) const {
    return peepholes_ == nullptr ? 0 : Widen(peepholes_[gate * s_.hidden + i]) * c;
  }

  const Sizes& s_;
  const ReadAs<T>* w_;
  const ReadAs<T>* r_;
  double* h_;
  double* c_;
  double* gates_;
  double clip_;
  bool coupled_;
  const T* bias_ = nullptr;
  const T* peepholes_ = nullptr;
  std::array<RnnActivation, 3> functions_{};
};

template <typename T>
void Store(const OpCall& call, size_t output, int64_t at, const double* from, int64_t count) {
  if (!call.has_out(output)) return;
  T* to = call.y(output).template data<T>() + at;
  for (int64_t i = 0; i < count; ++i) to[i] = from == nullptr ? T{} : Narrow<T>(from[i]);
}

template <typename T>
void RunTyped(const OpCall& call, std::span<std::byte> workspace) {
  const Sizes s = SizesOf(call);
  CheckLengths(call, s);
  const Direction direction = ReadDirection(call.schema->name, call.attrs());
  const auto* x = WidenInput<T>(call.x(kX), workspace);
  const auto* w = WidenInput<T>(call.x(kW), workspace);
  const auto* r = WidenInput<T>(call.x(kR), workspace);
  auto* const scratch = static_cast<double*>(static_cast<void*>(workspace.data()));
  const auto initial = [&](size_t input, int64_t at) {
    return call.has(input) ? call.x(input).template data<T>() + at : nullptr;
  };
  ParallelFor(s.dirs * s.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t dir = task / s.batch, entry = task % s.batch;
      const bool reversed = direction.first_reversed || dir == 1;
      const int64_t steps = Steps(call, s, entry), state = s.StateAt(dir, entry);
      Cell<T> cell(call, s, dir, w, r, scratch + task * ScratchPerEntry(s));
      cell.Start(initial(kInitialH, state), initial(kInitialC, state));
      for (int64_t i = 0; i < steps; ++i) {
        const int64_t step = reversed ? steps - 1 - i : i;
        cell.Step(x + s.InputAt(step, entry));
        Store<T>(call, 0, s.OutputAt(step, dir, entry), cell.h(), s.hidden);
      }
      for (int64_t step = steps; step < s.seq; ++step) {
        Store<T>(call, 0, s.OutputAt(step, dir, entry), nullptr, s.hidden);
      }
      Store<T>(call, 1, state, cell.h(), s.hidden);
      Store<T>(call, 2, state, cell.c(), s.hidden);
    }
  });
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  DispatchReference<kFloatTypes>(call, call.x(kX).dtype(),
                                 [&]<typename T>() { RunTyped<T>(call, workspace); });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  const auto optional = [types](std::string_view name) {
    return Formal{.name = name, .types = types, .optional = true, .group = 1};
  };
  OpSchema s{
      .name = "LSTM",
      .since = since,
      .until = until,
      .inputs = {{.name = "X", .types = types, .group = 1},
                 {.name = "W", .types = types, .group = 1},
                 {.name = "R", .types = types, .group = 1},
                 optional("B"),
                 {.name = "sequence_lens", .types = TypeBit(DType::kInt32), .optional = true},
                 optional("initial_h"),
                 optional("initial_c"),
                 optional("P")},
      .outputs = {optional("Y"), optional("Y_h"), optional("Y_c")},
      .attributes = {{.name = "activation_alpha", .type = AttributeType::kFloats},
                     {.name = "activation_beta", .type = AttributeType::kFloats},
                     {.name = "activations",
                      .type = AttributeType::kStrings,
                      .note = "default Sigmoid, Tanh, Tanh"},
                     {.name = "clip", .type = AttributeType::kFloat, .note = "default: none"},
                     {.name = "direction",
                      .type = AttributeType::kString,
                      .note = "forward (default), reverse, bidirectional"},
                     {.name = "hidden_size",
                      .type = AttributeType::kInt,
                      .note = "default: that of R"},
                     {.name = "input_forget",
                      .type = AttributeType::kInt,
                      .note = "1: the forget gate is 1 - i"}},
      .infer = Infer,
      .cost = LstmCost,
      .samples = std::move(samples),
      .matrix_op = true,
      .doc = "one layer of long short-term memory",
  };
  if (since >= 14)
    s.attributes.push_back(
        {.name = "layout", .type = AttributeType::kInt, .note = "1: batch first"});
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
