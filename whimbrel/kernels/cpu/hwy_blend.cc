// Weighted sums of runs: what interpolation is made of.

#include "whimbrel/kernels/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "whimbrel/kernels/cpu/hwy_blend.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "whimbrel/kernels/cpu/hwy_blend.h"
#include "whimbrel/kernels/cpu/hwy_map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace whimbrel {
namespace HWY_NAMESPACE {
namespace {

void WeightedSum(const float* const* runs, const float* weights, size_t taps, size_t count,
                 float* out) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    F32Vec sum = hn::Mul(hn::Set(d, weights[0]), hn::LoadU(d, runs[0] + i));
    for (size_t k = 1; k < taps; ++k) {
      sum = hn::MulAdd(hn::Set(d, weights[k]), hn::LoadU(d, runs[k] + i), sum);
    }
    hn::StoreU(sum, d, out + i);
  }
  if (i < count) {
    const auto mask = hn::FirstN(d, count - i);
    F32Vec sum = hn::Mul(hn::Set(d, weights[0]), hn::MaskedLoad(mask, d, runs[0] + i));
    for (size_t k = 1; k < taps; ++k) {
      sum = hn::MulAdd(hn::Set(d, weights[k]), hn::MaskedLoad(mask, d, runs[k] + i), sum);
    }
    hn::BlendedStore(sum, mask, d, out + i);
  }
}

}  // namespace

WeightedSumFunction WeightedSumOf() {
  return WeightedSum;
}

}  // namespace HWY_NAMESPACE
}  // namespace whimbrel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace whimbrel {

HWY_EXPORT(WeightedSumOf);

WeightedSumFunction FindWeightedSum() {
  SettleHighwayTargets();
  return HWY_DYNAMIC_DISPATCH(WeightedSumOf)();
}

}  // namespace whimbrel
#endif  // HWY_ONCE
