// Transcendental steps: what needs an exponential, a logarithm or a sine.

#include "whimbrel/kernels/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "whimbrel/kernels/cpu/hwy_steps_transcendental.cc"
#include <cmath>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "whimbrel/kernels/cpu/hwy_exp-inl.h"
#include "whimbrel/kernels/cpu/hwy_map-inl.h"
#include "whimbrel/kernels/cpu/hwy_steps.h"

HWY_BEFORE_NAMESPACE();
namespace whimbrel {
namespace HWY_NAMESPACE {
namespace {

// log(1 + e^v) without overflow: max(v, 0) + log1p(e^-|v|).
HWY_INLINE F32Vec SoftplusOf(F32Vec v) {
  const F32 d;
  const F32Vec e = ExpOf(hn::Neg(hn::Abs(v)));
  const F32Vec log = hn::Log(d, hn::Add(e, S(1)));
  return hn::IfThenElse(hn::IsNaN(v), v, hn::Add(hn::Max(v, hn::Zero(d)), log));
}

// sin and cos by Highway lose their digits where the argument outgrows 2^13 or so; libm serves
// those.
void SinStep(const ChainStep&, const float* in, StepOperand, float* out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = std::sin(in[i]);
}
void CosStep(const ChainStep&, const float* in, StepOperand, float* out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = std::cos(in[i]);
}

#define WHIMBREL_UNARY_STEP(name, expression)                                            \
  void name(const ChainStep& step, const float* in, StepOperand, float* out, size_t n) { \
    [[maybe_unused]] const F32Vec a = S(step.a), b = S(step.b);                          \
    MapOne(in, out, n, [=](F32Vec v) HWY_ATTR {                                          \
      (void)a, (void)b;                                                                  \
      return expression;                                                                 \
    });                                                                                  \
  }
WHIMBREL_UNARY_STEP(SigmoidStep, SigmoidOf(v))
WHIMBREL_UNARY_STEP(TanhStep, TanhOf(v))
WHIMBREL_UNARY_STEP(ExpStep, ExpOf(v))
WHIMBREL_UNARY_STEP(LogStep, LogOf(v))
WHIMBREL_UNARY_STEP(ErfStep, ErfOf(v))
WHIMBREL_UNARY_STEP(GeluStep, hn::Mul(hn::Mul(v, S(0.5)),
                                      hn::Add(S(1), ErfOf(hn::Mul(v, S(0.70710678118654752))))))
WHIMBREL_UNARY_STEP(GeluTanhStep,
                    hn::Mul(v, SigmoidOf(hn::Mul(hn::Mul(v, S(2 * 0.7978845608028654)),
                                                 hn::MulAdd(hn::Mul(v, v), S(0.044715), S(1))))))
WHIMBREL_UNARY_STEP(SiluStep, hn::Mul(v, SigmoidOf(hn::Mul(v, a))))
WHIMBREL_UNARY_STEP(SoftplusStep, SoftplusOf(v))
WHIMBREL_UNARY_STEP(MishStep, hn::Mul(v, TanhOf(SoftplusOf(v))))
WHIMBREL_UNARY_STEP(EluStep, hn::IfThenElse(hn::Lt(v, hn::Zero(F32())),
                                            hn::Mul(a, hn::Sub(ExpOf(v), S(1))), v))
WHIMBREL_UNARY_STEP(CeluStep, hn::IfThenElse(hn::Lt(v, hn::Zero(F32())),
                                             hn::Mul(a, hn::Sub(ExpOf(hn::Div(v, a)), S(1))), v))
WHIMBREL_UNARY_STEP(SeluStep, hn::Mul(b, hn::IfThenElse(hn::Le(v, hn::Zero(F32())),
                                                        hn::Mul(a, hn::Sub(ExpOf(v), S(1))), v)))
#undef WHIMBREL_UNARY_STEP

}  // namespace

StepFunction TranscendentalStep(StepOp op) {
  switch (op) {
    case StepOp::kSigmoid:
      return SigmoidStep;
    case StepOp::kTanh:
      return TanhStep;
    case StepOp::kExp:
      return ExpStep;
    case StepOp::kLog:
      return LogStep;
    case StepOp::kErf:
      return ErfStep;
    case StepOp::kGelu:
      return GeluStep;
    case StepOp::kGeluTanh:
      return GeluTanhStep;
    case StepOp::kSilu:
      return SiluStep;
    case StepOp::kSoftplus:
      return SoftplusStep;
    case StepOp::kMish:
      return MishStep;
    case StepOp::kElu:
      return EluStep;
    case StepOp::kCelu:
      return CeluStep;
    case StepOp::kSelu:
      return SeluStep;
    case StepOp::kSin:
      return SinStep;
    case StepOp::kCos:
      return CosStep;
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace whimbrel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace whimbrel {

HWY_EXPORT(TranscendentalStep);

StepFunction FindTranscendentalStep(StepOp op) {
  SettleHighwayTargets();
  return HWY_DYNAMIC_DISPATCH(TranscendentalStep)(op);
}

}  // namespace whimbrel
#endif  // HWY_ONCE
