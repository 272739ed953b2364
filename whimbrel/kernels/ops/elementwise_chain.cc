// ElementwiseChain: y = program(x, ...), a run of elementwise steps that touches memory once.
//
// in   x, ...   float types, one type, up to 8, broadcast against each other
// attr program  strings, the steps in order; ops/elementwise_chain.h has the grammar
// out  y        type of x; rounded once at the end by the reference
// Source: made by the graph floor from chains of ONNX elementwise operators.

#include "whimbrel/kernels/ops/elementwise_chain.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "whimbrel/kernels/reference.h"

namespace whimbrel {
namespace {

struct StepForm {
  std::string_view name;
  StepOp op;
  int constants;  // numbers that follow the name; operand steps take one operand instead
};

constexpr StepForm kForms[] = {
    {"add", StepOp::kAdd, 0},
    {"sub", StepOp::kSub, 0},
    {"rsub", StepOp::kRsub, 0},
    {"mul", StepOp::kMul, 0},
    {"div", StepOp::kDiv, 0},
    {"rdiv", StepOp::kRdiv, 0},
    {"max", StepOp::kMax, 0},
    {"min", StepOp::kMin, 0},
    {"pow", StepOp::kPow, 0},
    {"rpow", StepOp::kRpow, 0},
    {"prelu", StepOp::kPrelu, 0},
    {"relu", StepOp::kRelu, 0},
    {"clip", StepOp::kClip, 2},
    {"hardsigmoid", StepOp::kHardSigmoid, 2},
    {"leakyrelu", StepOp::kLeakyRelu, 1},
    {"thresholdedrelu", StepOp::kThresholdedRelu, 1},
    {"hardswish", StepOp::kHardSwish, 0},
    {"sqrt", StepOp::kSqrt, 0},
    {"reciprocal", StepOp::kReciprocal, 0},
    {"neg", StepOp::kNeg, 0},
    {"abs", StepOp::kAbs, 0},
    {"floor", StepOp::kFloor, 0},
    {"ceil", StepOp::kCeil, 0},
    {"round", StepOp::kRound, 0},
    {"sign", StepOp::kSign, 0},
    {"softsign", StepOp::kSoftsign, 0},
    {"sigmoid", StepOp::kSigmoid, 0},
    {"tanh", StepOp::kTanh, 0},
    {"exp", StepOp::kExp, 0},
    {"log", StepOp::kLog, 0},
    {"erf", StepOp::kErf, 0},
    {"gelu", StepOp::kGelu, 0},
    {"gelu_tanh", StepOp::kGeluTanh, 0},
    {"silu", StepOp::kSilu, 1},
    {"softplus", StepOp::kSoftplus, 0},
    {"mish", StepOp::kMish, 0},
    {"elu", StepOp::kElu, 1},
    {"celu", StepOp::kCelu, 1},
    {"selu", StepOp::kSelu, 2},
    {"sin", StepOp::kSin, 0},
    {"cos", StepOp::kCos, 0},
};

[[noreturn]] void FailWord(std::string_view word, std::string_view what) {
  throw Error(Code::kInvalidData, fmt::format("ElementwiseChain: step \"{}\": {}", word, what),
              "whimbrel/kernels/ops/elementwise_chain.h has the grammar");
}

template <typename T>
T ParseNumber(std::string_view word, std::string_view text) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) {
    FailWord(word, fmt::format("\"{}\" is no number that fits", text));
  }
  return value;
}

ChainStep ParseStep(std::string_view word, size_t inputs) {
  if (word == "mulx") return {.op = StepOp::kMul, .operand = 0};
  const std::string_view name = word.substr(0, word.find(':'));
  const auto form = std::find_if(std::begin(kForms), std::end(kForms),
                                 [&](const StepForm& f) { return f.name == name; });
  if (form == std::end(kForms)) FailWord(word, "no such step");
  ChainStep step{.op = form->op};
  std::string_view rest = word.substr(name.size());
  const auto next = [&] {
    if (rest.empty()) FailWord(word, "an argument is missing");
    rest.remove_prefix(1);
    const std::string_view argument = rest.substr(0, rest.find(':'));
    rest.remove_prefix(argument.size());
    return argument;
  };
  if (TakesOperand(step.op)) {
    const std::string_view operand = next();
    if (operand.starts_with('c')) {
      step.a = ParseNumber<double>(word, operand.substr(1));
    } else {
      step.operand = ParseNumber<int>(word, operand);
      if (step.operand < 0 || static_cast<size_t>(step.operand) >= inputs) {
        FailWord(word, fmt::format("input {} is not among the {}", step.operand, inputs));
      }
    }
  }
  if (form->constants > 0) step.a = ParseNumber<double>(word, next());
  if (form->constants > 1) step.b = ParseNumber<double>(word, next());
  if (!rest.empty()) FailWord(word, "too many arguments");
  return step;
}

// NaN of either side wins, as in numpy.maximum.
double MaxOf(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}
double MinOf(double a, double b) {
  return std::isnan(a) || a < b ? a : b;
}
double ClipOf(double v, double low, double high) {
  return MinOf(MaxOf(v, low), high);
}
double SigmoidOf(double v) {
  return 1 / (1 + std::exp(-v));
}
double SoftplusOf(double v) {
  return v > 0 ? v + std::log1p(std::exp(-v)) : std::log1p(std::exp(v));
}

void InferChain(InferContext& c) {
  if (c.inputs() > kMaxChainInputs) {
    c.Fail(fmt::format("{} inputs, at most {} are taken", c.inputs(), kMaxChainInputs));
  }
  ParseChain(c.attrs().Strings("program"), c.inputs());
  InferBroadcast(c);
}

template <typename T>
void RunTyped(const OpCall& call, std::span<const ChainStep> steps) {
  using Walk = BroadcastWalk<kMaxChainInputs>;
  std::array<const Shape*, kMaxChainInputs> shapes{};
  std::array<const T*, kMaxChainInputs> data{};
  for (size_t i = 0; i < kMaxChainInputs; ++i) {
    const Tensor& x = call.x(i < call.in.size() ? i : 0);  // the rest repeats input 0
    shapes[i] = &x.shape();
    data[i] = x.data<T>();
  }
  T* y = call.y(0).data<T>();
  const Walk walk(call.y(0).shape(), shapes);
  ParallelFor(call.y(0).elements(), 4096, [&](int64_t begin, int64_t end) {
    walk.Run(begin, end, [&](int64_t i, const std::array<int64_t, kMaxChainInputs>& at) {
      double value = Widen(data[0][at[0]]);
      for (const ChainStep& step : steps) {
        const auto k = static_cast<size_t>(std::max(step.operand, 0));
        value = ApplyStep(step, value, step.operand < 0 ? step.a : Widen(data[k][at[k]]));
      }
      y[i] = Narrow<T>(value);
    });
  });
}

struct ChainState final : KernelState {
  std::vector<ChainStep> steps;
};

std::unique_ptr<KernelState> Prepare(const OpCall& call) {
  auto state = std::make_unique<ChainState>();
  state->steps = ParseChain(call.attrs().Strings("program"), call.in.size());
  return state;
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const auto& steps = static_cast<const ChainState*>(call.state)->steps;
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(),
                                 [&]<typename T>() { RunTyped<T>(call, steps); });
}

Cost ChainCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops *= static_cast<double>(call.attrs().Strings("program").size());
  return cost;
}

WHIMBREL_REGISTER(OpSchema{
    .name = "ElementwiseChain",
    .domain = "whimbrel",
    .inputs = {{.name = "X", .types = kFloatTypes, .variadic = true, .group = 1}},
    .outputs = {{.name = "Y", .types = kFloatTypes, .group = 1}},
    .attributes = {{"program", AttributeType::kStrings, true, "steps, in order"}},
    .infer = InferChain,
    .cost = ChainCost,
    .samples = {"f32:2x3x5x7 program=sigmoid,mulx",
                "f32:1x24x17x19 program=add:c3,clip:0:6,mulx,mul:c0.16666667",
                "f32:1x64x20x20 f32:1x64x1x1 program=mul:1,relu",
                "f32:2x5x9x9 f32:5x1x1 f32:5x1x1 program=mul:1,add:2,hardsigmoid:0.2:0.5,mul:0",
                "f32:1 program=tanh",
                "f32:0x4 f32:4 program=add:1",
                "f32:3x1300 f32:1300 f32: program=add:1,max:2,abs,sqrt",
                "f32:7 f32:5x7 program=rsub:1,exp",
                "f32:2x48x7x7 f32:2x48x1x1 program=mul:1,relu",
                "f32:90x3x4 f32:3x1 program=add:1",
                "f32:300x40 f32:40 f32:300x1 program=mul:1,add:2",
                "f32:2x5x4x6 f32:5x4x6 program=sub:1",
                "f32:3x2100 f32:3x1 program=mul:1,tanh",
                "f32:5x1 f32:1x6 f32:5x6 program=mul:1,rdiv:2,softsign",
                "f32:4x33 program=pow:c2,mul:c-0.5,exp,rpow:c2,neg",
                "f32:2x9x700 program=leakyrelu:0.1,elu:1,celu:0.7,selu:1.67:1.05,sign",
                "f32:4x19 f32:19 program=prelu:1,erf,gelu,gelu_tanh,softplus,log",
                "f32:9x9 program=sin,cos,mish,silu:1.7,floor",
                "f32:33@-9..9 program=round,div:c3,ceil",
                "f32:40@0.1..4 f32:40 program=pow:1,min:1,reciprocal,thresholdedrelu:0.5,hardswish",
                "f32:37 f32:37 program=max:1,relu,min:c1,clip:-1:0.5,sigmoid nan=1",
                "f16:3x17 f16:17 program=mul:1,relu",
                "bf16:3x17 program=sigmoid,mulx",
                "f64:5x3 f64:3 program=sub:1,pow:c3"},
});
WHIMBREL_REGISTER(Kernel{.op = "ElementwiseChain",
                         .domain = "whimbrel",
                         .name = "reference",
                         .in_place = 0,
                         .prepare = Prepare,
                         .run = Run});

}  // namespace

std::string_view StepName(StepOp op) {
  return std::find_if(std::begin(kForms), std::end(kForms),
                      [op](const StepForm& f) { return f.op == op; })
      ->name;
}

std::vector<ChainStep> ParseChain(std::span<const std::string> program, size_t inputs) {
  if (program.empty() || program.size() > kMaxChainSteps) {
    throw Error(Code::kInvalidData,
                fmt::format("ElementwiseChain: {} steps, from 1 to {} are taken", program.size(),
                            kMaxChainSteps));
  }
  std::vector<ChainStep> steps;
  for (const std::string& word : program) steps.push_back(ParseStep(word, inputs));
  return steps;
}

double ApplyStep(const ChainStep& step, double v, double operand) {
  switch (step.op) {
    case StepOp::kAdd:
      return v + operand;
    case StepOp::kSub:
      return v - operand;
    case StepOp::kRsub:
      return operand - v;
    case StepOp::kMul:
      return v * operand;
    case StepOp::kDiv:
      return v / operand;
    case StepOp::kRdiv:
      return operand / v;
    case StepOp::kMax:
      return MaxOf(v, operand);
    case StepOp::kMin:
      return MinOf(v, operand);
    case StepOp::kPow:
      return std::pow(v, operand);
    case StepOp::kRpow:
      return std::pow(operand, v);
    case StepOp::kPrelu:
      return v < 0 ? v * operand : v;
    case StepOp::kRelu:
      return v < 0 ? 0 : v;
    case StepOp::kClip:
      return ClipOf(v, step.a, step.b);
    case StepOp::kHardSigmoid:
      return ClipOf(step.a * v + step.b, 0, 1);
    case StepOp::kLeakyRelu:
      return v < 0 ? v * step.a : v;
    case StepOp::kThresholdedRelu:
      return v > step.a ? v : 0;  // NaN is not above it
    case StepOp::kHardSwish:
      return v * ClipOf(v / 6 + 0.5, 0, 1);
    case StepOp::kSqrt:
      return std::sqrt(v);
    case StepOp::kReciprocal:
      return 1 / v;
    case StepOp::kNeg:
      return -v;
    case StepOp::kAbs:
      return std::abs(v);
    case StepOp::kFloor:
      return std::floor(v);
    case StepOp::kCeil:
      return std::ceil(v);
    case StepOp::kRound:
      return std::nearbyint(v);
    case StepOp::kSign:
      return v > 0 ? 1 : v < 0 ? -1 : v;
    case StepOp::kSoftsign:
      return v / (1 + std::abs(v));
    case StepOp::kSigmoid:
      return SigmoidOf(v);
    case StepOp::kTanh:
      return std::tanh(v);
    case StepOp::kExp:
      return std::exp(v);
    case StepOp::kLog:
      return std::log(v);
    case StepOp::kErf:
      return std::erf(v);
    case StepOp::kGelu:
      return 0.5 * v * (1 + std::erf(v * std::sqrt(0.5)));
    case StepOp::kGeluTanh:
      return 0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
    case StepOp::kSilu:
      return v * SigmoidOf(step.a * v);
    case StepOp::kSoftplus:
      return SoftplusOf(v);
    case StepOp::kMish:
      return v * std::tanh(SoftplusOf(v));
    case StepOp::kElu:
      return v < 0 ? step.a * std::expm1(v) : v;
    case StepOp::kCelu:
      return v < 0 ? step.a * std::expm1(v / step.a) : v;
    case StepOp::kSelu:
      return step.b * (v <= 0 ? step.a * std::expm1(v) : v);
    case StepOp::kSin:
      return std::sin(v);
    case StepOp::kCos:
      return std::cos(v);
  }
  return v;
}

}  // namespace whimbrel
