// Exponential and its family on f32 vectors, NaN and infinities as libm, absolute error near 1e-7.

// Per-target include guard
#if defined(WHIMBREL_KERNELS_CPU_HWY_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WHIMBREL_KERNELS_CPU_HWY_EXP_INL_H_
#undef WHIMBREL_KERNELS_CPU_HWY_EXP_INL_H_
#else
#define WHIMBREL_KERNELS_CPU_HWY_EXP_INL_H_
#endif

#include <limits>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "whimbrel/kernels/cpu/hwy_map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace whimbrel {
namespace HWY_NAMESPACE {

HWY_INLINE F32Vec S(double value) {
  return hn::Set(F32(), static_cast<float>(value));
}

// hn::Exp takes up to 104 and makes NaN zero.
HWY_INLINE F32Vec ExpOf(F32Vec v) {
  const F32 d;
  return hn::IfThenElse(hn::IsNaN(v), v, hn::Exp(d, hn::Min(v, S(104))));
}

// hn::Log takes positive finite numbers.
HWY_INLINE F32Vec LogOf(F32Vec v) {
  const F32 d;
  const F32Vec inf = hn::Set(d, std::numeric_limits<float>::infinity());
  const F32Vec nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  const F32Vec edge = hn::IfThenElse(hn::Eq(v, hn::Zero(d)), hn::Neg(inf),
                                     hn::IfThenElse(hn::Eq(v, inf), inf, nan));
  return hn::IfThenElse(hn::And(hn::Gt(v, hn::Zero(d)), hn::Lt(v, inf)), hn::Log(d, v), edge);
}

// 1 / (1 + e^-v). What the sum loses to rounding (exactly e - (sum - 1), e above 1 or below) is
// handed to one Newton step of the quotient: with the plain quotient, two units off, dynamically
// quantised networks round elsewhere. From 2^120 on, where the sum may be infinite, the quotient
// stays as it is.
HWY_INLINE F32Vec SigmoidOf(F32Vec v) {
  const F32Vec one = S(1), e = ExpOf(hn::Neg(v));
  const F32Vec sum = hn::Add(one, e);
  const F32Vec quotient = hn::Div(one, sum);
  const F32Vec lost = hn::Sub(e, hn::Sub(sum, one));
  const F32Vec rest = hn::NegMulAdd(quotient, lost, hn::NegMulAdd(quotient, sum, one));
  const F32Vec better = hn::MulAdd(quotient, rest, quotient);
  return hn::IfThenElse(hn::Lt(e, S(0x1p120)), better, quotient);
}

// 1 - 2 / (e^2|v| + 1) with v's sign; for small |v| the odd polynomial, which keeps its digits.
HWY_INLINE F32Vec TanhOf(F32Vec v) {
  const F32Vec magnitude = hn::Abs(v);
  const F32Vec large =
      hn::Sub(S(1), hn::Div(S(2), hn::Add(S(1), ExpOf(hn::Add(magnitude, magnitude)))));
  const F32Vec square = hn::Mul(v, v);
  // x - x^3/3 + 2x^5/15 - 17x^7/315: below 2^-4 the next term is under 1e-11
  const F32Vec poly =
      hn::MulAdd(hn::MulAdd(hn::MulAdd(square, S(-17.0 / 315), S(2.0 / 15)), square, S(-1.0 / 3)),
                 square, S(1));
  return hn::IfThenElse(hn::Lt(magnitude, S(0.0625)), hn::Mul(v, poly), hn::CopySign(large, v));
}

// Abramowitz & Stegun 7.1.26: |error| < 1.5e-7 plus rounding.
HWY_INLINE F32Vec ErfOf(F32Vec v) {
  const F32Vec magnitude = hn::Abs(v);
  const F32Vec t = hn::Div(S(1), hn::MulAdd(magnitude, S(0.3275911), S(1)));
  F32Vec poly = hn::MulAdd(t, S(1.061405429), S(-1.453152027));
  poly = hn::MulAdd(poly, t, S(1.421413741));
  poly = hn::MulAdd(poly, t, S(-0.284496736));
  poly = hn::Mul(hn::MulAdd(poly, t, S(0.254829592)), t);
  const F32Vec tail = hn::Mul(poly, ExpOf(hn::Neg(hn::Mul(v, v))));
  return hn::IfThenElse(hn::IsNaN(v), v, hn::CopySign(hn::Sub(S(1), tail), v));
}

}  // namespace HWY_NAMESPACE
}  // namespace whimbrel
HWY_AFTER_NAMESPACE();

#endif
