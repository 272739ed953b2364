// Softmax and layer normalization of single rows.

#include "whimbrel/kernels/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "whimbrel/kernels/cpu/hwy_rows.cc"
#include <algorithm>
#include <cmath>
#include <limits>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "whimbrel/kernels/cpu/hwy_exp-inl.h"
#include "whimbrel/kernels/cpu/hwy_map-inl.h"
#include "whimbrel/kernels/cpu/hwy_rows.h"

HWY_BEFORE_NAMESPACE();
namespace whimbrel {
namespace HWY_NAMESPACE {
namespace {

// Calls fn(index, vector, mask) over a row; lanes beyond its end are 0.
template <typename F>
HWY_INLINE void ForRow(const float* x, int64_t count, F fn) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) fn(i, hn::LoadU(d, x + i), hn::FirstN(d, hn::Lanes(d)));
  if (i < count) {
    const auto mask = hn::FirstN(d, static_cast<size_t>(count - i));
    fn(i, hn::MaskedLoad(mask, d, x + i), mask);
  }
}

HWY_INLINE float SumOf(F32Vec v) {
  return hn::GetLane(hn::SumOfLanes(F32(), v));
}

// The largest of a row; NaN wins.
HWY_INLINE float LargestOf(const float* x, int64_t count) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const F32Vec low = hn::Set(d, -std::numeric_limits<float>::infinity());
  F32Vec a = low, b = low;
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    a = MaxNan(a, hn::LoadU(d, x + i));
    b = MaxNan(b, hn::LoadU(d, x + i + lanes));
  }
  for (; i < count; i += lanes) {
    const auto mask = hn::FirstN(d, static_cast<size_t>(std::min(lanes, count - i)));
    a = MaxNan(a, hn::IfThenElse(mask, hn::MaskedLoad(mask, d, x + i), low));
  }
  a = MaxNan(a, b);
  if (!hn::AllFalse(d, hn::IsNaN(a))) return std::numeric_limits<float>::quiet_NaN();
  return hn::GetLane(hn::MaxOfLanes(d, a));
}

template <bool kLogarithm>
HWY_INLINE void SoftmaxRow(const float* x, int64_t count, float* y) {
  const F32 d;
  const F32Vec largest = hn::Set(d, LargestOf(x, count));
  F32Vec sum = hn::Zero(d);
  ForRow(x, count, [&](int64_t i, F32Vec v, auto mask) HWY_ATTR {
    const F32Vec e = hn::IfThenElseZero(mask, ExpOf(hn::Sub(v, largest)));
    sum = hn::Add(sum, e);
    if (!kLogarithm) hn::BlendedStore(e, mask, d, y + i);
  });
  const float total = SumOf(sum);
  if (kLogarithm) {
    // two subtractions: largest + log would lose the logarithm's digits beside a large number
    const F32Vec log = hn::Set(d, std::log(total));
    MapOne(x, y, static_cast<size_t>(count),
           [=](F32Vec v) HWY_ATTR { return hn::Sub(hn::Sub(v, largest), log); });
  } else {
    const F32Vec factor = hn::Set(d, 1 / total);
    MapOne(y, y, static_cast<size_t>(count), [=](F32Vec v) HWY_ATTR { return hn::Mul(v, factor); });
  }
}

template <bool kLogarithm>
void Softmax(const float* x, int64_t count, int64_t stride, int64_t width, float* y) {
  if (stride == 1) return SoftmaxRow<kLogarithm>(x, count, y);
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t c = 0; c < width; c += lanes) {
    const auto mask = hn::FirstN(d, static_cast<size_t>(std::min(lanes, width - c)));
    F32Vec largest = hn::MaskedLoad(mask, d, x + c);
    for (int64_t r = 1; r < count; ++r) {
      largest = MaxNan(largest, hn::MaskedLoad(mask, d, x + r * stride + c));
    }
    F32Vec sum = hn::Zero(d);
    for (int64_t r = 0; r < count; ++r) {
      const F32Vec e = ExpOf(hn::Sub(hn::MaskedLoad(mask, d, x + r * stride + c), largest));
      sum = hn::Add(sum, e);
      if (!kLogarithm) hn::BlendedStore(e, mask, d, y + r * stride + c);
    }
    const F32Vec last = kLogarithm ? LogOf(sum) : hn::Div(hn::Set(d, 1), sum);
    for (int64_t r = 0; r < count; ++r) {
      const F32Vec v = hn::MaskedLoad(mask, d, (kLogarithm ? x : y) + r * stride + c);
      hn::BlendedStore(kLogarithm ? hn::Sub(hn::Sub(v, largest), last) : hn::Mul(v, last), mask, d,
                       y + r * stride + c);
    }
  }
}

void Normalize(const float* x, int64_t count, const NormalizeRow& how, float* y) {
  const F32 d;
  const auto n = static_cast<float>(count);
  // Differences from the first element: a mean far from 0 costs no digits.
  const F32Vec shift = how.centered ? hn::Set(d, x[0]) : hn::Zero(d);
  F32Vec mean = hn::Zero(d);
  if (how.centered) {
    F32Vec sum = hn::Zero(d);
    ForRow(x, count, [&](int64_t, F32Vec v, auto mask) HWY_ATTR {
      sum = hn::Add(sum, hn::IfThenElseZero(mask, hn::Sub(v, shift)));
    });
    mean = hn::Set(d, SumOf(sum) / n);
  }
  F32Vec squares = hn::Zero(d);
  ForRow(x, count, [&](int64_t, F32Vec v, auto mask) HWY_ATTR {
    const F32Vec c = hn::IfThenElseZero(mask, hn::Sub(hn::Sub(v, shift), mean));
    squares = hn::MulAdd(c, c, squares);
  });
  const F32Vec inverse = hn::Set(d, 1 / std::sqrt(SumOf(squares) / n + how.epsilon));
  ForRow(x, count, [&](int64_t i, F32Vec v, auto mask) HWY_ATTR {
    v = hn::Mul(hn::Sub(hn::Sub(v, shift), mean), inverse);
    v = hn::Mul(v, hn::MaskedLoad(mask, d, how.scale + i));
    if (how.bias != nullptr) v = hn::Add(v, hn::MaskedLoad(mask, d, how.bias + i));
    hn::BlendedStore(v, mask, d, y + i);
  });
}

}  // namespace

SoftmaxFunction SoftmaxOf(bool logarithm) {
  return logarithm ? Softmax<true> : Softmax<false>;
}
NormalizeFunction NormalizeOf() {
  return Normalize;
}

}  // namespace HWY_NAMESPACE
}  // namespace whimbrel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace whimbrel {

HWY_EXPORT(SoftmaxOf);
HWY_EXPORT(NormalizeOf);

SoftmaxFunction FindSoftmax(bool logarithm) {
  SettleHighwayTargets();
  return HWY_DYNAMIC_DISPATCH(SoftmaxOf)(logarithm);
}
NormalizeFunction FindNormalizeRow() {
  SettleHighwayTargets();
  return HWY_DYNAMIC_DISPATCH(NormalizeOf)();
}

}  // namespace whimbrel
#endif  // HWY_ONCE
