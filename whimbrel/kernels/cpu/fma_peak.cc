// The multiply-add loop, once per instruction set.

#include "whimbrel/kernels/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "whimbrel/kernels/cpu/fma_peak.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "whimbrel/kernels/cpu/fma_peak.h"

HWY_BEFORE_NAMESPACE();
namespace whimbrel {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Two units with a latency of four or five want ten sums in flight; twelve and two constants fit
// the 16 registers of AVX2.
double FmaLoop(int64_t rounds) {
  const hn::ScalableTag<float> d;
  const auto scale = hn::Set(d, 0.999F);
  const auto add = hn::Set(d, 0.001F);
  auto s0 = hn::Iota(d, 0), s1 = hn::Iota(d, 1), s2 = hn::Iota(d, 2), s3 = hn::Iota(d, 3);
  auto s4 = hn::Iota(d, 4), s5 = hn::Iota(d, 5), s6 = hn::Iota(d, 6), s7 = hn::Iota(d, 7);
  auto s8 = hn::Iota(d, 8), s9 = hn::Iota(d, 9), s10 = hn::Iota(d, 10), s11 = hn::Iota(d, 11);
  for (int64_t i = 0; i < rounds; ++i) {
    s0 = hn::MulAdd(s0, scale, add);
    s1 = hn::MulAdd(s1, scale, add);
    s2 = hn::MulAdd(s2, scale, add);
    s3 = hn::MulAdd(s3, scale, add);
    s4 = hn::MulAdd(s4, scale, add);
    s5 = hn::MulAdd(s5, scale, add);
    s6 = hn::MulAdd(s6, scale, add);
    s7 = hn::MulAdd(s7, scale, add);
    s8 = hn::MulAdd(s8, scale, add);
    s9 = hn::MulAdd(s9, scale, add);
    s10 = hn::MulAdd(s10, scale, add);
    s11 = hn::MulAdd(s11, scale, add);
  }
  const auto sum = hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)),
                           hn::Add(hn::Add(hn::Add(s4, s5), hn::Add(s6, s7)),
                                   hn::Add(hn::Add(s8, s9), hn::Add(s10, s11))));
  // A result that nobody read would let the compiler drop the loop.
  [[maybe_unused]] volatile float read = hn::GetLane(hn::SumOfLanes(d, sum));
  return static_cast<double>(rounds) * 12 * 2 * static_cast<double>(hn::Lanes(d));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace whimbrel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace whimbrel {

HWY_EXPORT(FmaLoop);

double RunFmaLoop(int64_t rounds) {
  SettleHighwayTargets();
  return HWY_DYNAMIC_DISPATCH(FmaLoop)(rounds);
}

}  // namespace whimbrel

#endif
