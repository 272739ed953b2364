// Arithmetic steps: what needs no exponential.

#include "whimbrel/kernels/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "whimbrel/kernels/cpu/hwy_steps_arithmetic.cc"
#include <cmath>
#include <limits>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "whimbrel/kernels/cpu/hwy_map-inl.h"
#include "whimbrel/kernels/cpu/hwy_steps.h"

HWY_BEFORE_NAMESPACE();
namespace whimbrel {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE F32Vec S(double value) {
  return hn::Set(F32(), static_cast<float>(value));
}

// f(value, operand), the operand a run or one number.
template <typename F>
HWY_INLINE void WithOperand(const float* in, StepOperand operand, float* out, size_t n, F f) {
  if (operand.data != nullptr) {
    MapTwo(in, operand.data, out, n, f);
  } else {
    const F32Vec b = hn::Set(F32(), operand.scalar);
    MapOne(in, out, n, [b, f](F32Vec a) HWY_ATTR { return f(a, b); });
  }
}

#define WHIMBREL_OPERAND_STEP(name, expression)                                               \
  void name(const ChainStep&, const float* in, StepOperand operand, float* out, size_t n) {   \
    WithOperand(in, operand, out, n, [](F32Vec v, F32Vec w) HWY_ATTR { return expression; }); \
  }
WHIMBREL_OPERAND_STEP(AddStep, hn::Add(v, w))
WHIMBREL_OPERAND_STEP(SubStep, hn::Sub(v, w))
WHIMBREL_OPERAND_STEP(RsubStep, hn::Sub(w, v))
WHIMBREL_OPERAND_STEP(MulStep, hn::Mul(v, w))
WHIMBREL_OPERAND_STEP(DivStep, hn::Div(v, w))
WHIMBREL_OPERAND_STEP(RdivStep, hn::Div(w, v))
WHIMBREL_OPERAND_STEP(MaxStep, MaxNan(v, w))
WHIMBREL_OPERAND_STEP(MinStep, MinNan(v, w))
WHIMBREL_OPERAND_STEP(PreluStep, hn::IfThenElse(hn::Lt(v, hn::Zero(F32())), hn::Mul(v, w), v))
#undef WHIMBREL_OPERAND_STEP

// The exponents that models use are multiplications; powf does the rest.
void PowStep(const ChainStep&, const float* in, StepOperand operand, float* out, size_t n) {
  if (operand.data != nullptr) {
    for (size_t i = 0; i < n; ++i) out[i] = std::pow(in[i], operand.data[i]);
  } else if (operand.scalar == 2.0f) {
    MapOne(in, out, n, [](F32Vec v) HWY_ATTR { return hn::Mul(v, v); });
  } else if (operand.scalar == 3.0f) {
    MapOne(in, out, n, [](F32Vec v) HWY_ATTR { return hn::Mul(hn::Mul(v, v), v); });
  } else if (operand.scalar == 0.5f) {
    // pow(-0, 0.5) is +0 and pow(-inf, 0.5) is inf, unlike sqrt
    const F32Vec inf = hn::Set(F32(), std::numeric_limits<float>::infinity());
    MapOne(in, out, n, [inf](F32Vec v) HWY_ATTR {
      return hn::IfThenElse(hn::Eq(v, hn::Neg(inf)), inf, hn::Sqrt(hn::Add(v, hn::Zero(F32()))));
    });
  } else {
    for (size_t i = 0; i < n; ++i) out[i] = std::pow(in[i], operand.scalar);
  }
}

void RpowStep(const ChainStep&, const float* in, StepOperand operand, float* out, size_t n) {
  if (operand.data != nullptr) {
    for (size_t i = 0; i < n; ++i) out[i] = std::pow(operand.data[i], in[i]);
  } else {
    for (size_t i = 0; i < n; ++i) out[i] = std::pow(operand.scalar, in[i]);
  }
}

#define WHIMBREL_UNARY_STEP(name, expression)                                            \
  void name(const ChainStep& step, const float* in, StepOperand, float* out, size_t n) { \
    [[maybe_unused]] const F32Vec a = S(step.a), b = S(step.b), zero = hn::Zero(F32()),  \
                                  one = S(1);                                            \
    MapOne(in, out, n, [=](F32Vec v) HWY_ATTR {                                          \
      (void)a, (void)b, (void)zero, (void)one;                                           \
      return expression;                                                                 \
    });                                                                                  \
  }
WHIMBREL_UNARY_STEP(ReluStep, hn::IfThenZeroElse(hn::Lt(v, zero), v))
WHIMBREL_UNARY_STEP(ClipStep, ClampNan(v, a, b))
WHIMBREL_UNARY_STEP(HardSigmoidStep, ClampNan(hn::MulAdd(v, a, b), zero, one))
WHIMBREL_UNARY_STEP(LeakyReluStep, hn::IfThenElse(hn::Lt(v, zero), hn::Mul(v, a), v))
WHIMBREL_UNARY_STEP(ThresholdedReluStep, hn::IfThenElseZero(hn::Gt(v, a), v))
WHIMBREL_UNARY_STEP(HardSwishStep,
                    hn::Mul(v, ClampNan(hn::MulAdd(v, S(1.0 / 6), S(0.5)), zero, one)))
WHIMBREL_UNARY_STEP(SqrtStep, hn::Sqrt(v))
WHIMBREL_UNARY_STEP(ReciprocalStep, hn::Div(one, v))
WHIMBREL_UNARY_STEP(NegStep, hn::Neg(v))
WHIMBREL_UNARY_STEP(AbsStep, hn::Abs(v))
WHIMBREL_UNARY_STEP(FloorStep, hn::Floor(v))
WHIMBREL_UNARY_STEP(CeilStep, hn::Ceil(v))
WHIMBREL_UNARY_STEP(RoundStep, hn::Round(v))
WHIMBREL_UNARY_STEP(SignStep,
                    hn::IfThenElse(hn::Gt(v, zero), one, hn::IfThenElse(hn::Lt(v, zero), S(-1), v)))
WHIMBREL_UNARY_STEP(SoftsignStep, hn::Div(v, hn::Add(one, hn::Abs(v))))
#undef WHIMBREL_UNARY_STEP

}  // namespace

StepFunction ArithmeticStep(StepOp op) {
  switch (op) {
    case StepOp::kAdd:
      return AddStep;
    case StepOp::kSub:
      return SubStep;
    case StepOp::kRsub:
      return RsubStep;
    case StepOp::kMul:
      return MulStep;
    case StepOp::kDiv:
      return DivStep;
    case StepOp::kRdiv:
      return RdivStep;
    case StepOp::kMax:
      return MaxStep;
    case StepOp::kMin:
      return MinStep;
    case StepOp::kPow:
      return PowStep;
    case StepOp::kRpow:
      return RpowStep;
    case StepOp::kPrelu:
      return PreluStep;
    case StepOp::kRelu:
      return ReluStep;
    case StepOp::kClip:
      return ClipStep;
    case StepOp::kHardSigmoid:
      return HardSigmoidStep;
    case StepOp::kLeakyRelu:
      return LeakyReluStep;
    case StepOp::kThresholdedRelu:
      return ThresholdedReluStep;
    case StepOp::kHardSwish:
      return HardSwishStep;
    case StepOp::kSqrt:
      return SqrtStep;
    case StepOp::kReciprocal:
      return ReciprocalStep;
    case StepOp::kNeg:
      return NegStep;
    case StepOp::kAbs:
      return AbsStep;
    case StepOp::kFloor:
      return FloorStep;
    case StepOp::kCeil:
      return CeilStep;
    case StepOp::kRound:
      return RoundStep;
    case StepOp::kSign:
      return SignStep;
    case StepOp::kSoftsign:
      return SoftsignStep;
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace whimbrel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace whimbrel {

HWY_EXPORT(ArithmeticStep);

StepFunction FindArithmeticStep(StepOp op) {
  SettleHighwayTargets();
  return HWY_DYNAMIC_DISPATCH(ArithmeticStep)(op);
}

StepFunction FindStepFunction(StepOp op) {
  const StepFunction found = FindArithmeticStep(op);
  return found != nullptr ? found : FindTranscendentalStep(op);
}

int StepWeight(StepOp op) {
  switch (op) {
    case StepOp::kPow:
    case StepOp::kRpow:
      return 40;
    case StepOp::kDiv:
    case StepOp::kRdiv:
    case StepOp::kReciprocal:
    case StepOp::kSqrt:
    case StepOp::kSoftsign:
      return 3;
    default:
      return op >= StepOp::kSigmoid ? 8 : 1;
  }
}

}  // namespace whimbrel
#endif  // HWY_ONCE
