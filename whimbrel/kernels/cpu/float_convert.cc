// f16 and bf16 conversion loops.

#include "whimbrel/kernels/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "whimbrel/kernels/cpu/float_convert.cc"
#include <cstring>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "whimbrel/base/threads.h"
#include "whimbrel/kernels/cpu/float_convert.h"
#include "whimbrel/kernels/cpu/hwy_map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace whimbrel {
namespace HWY_NAMESPACE {
namespace {

using F16 = hn::Rebind<hwy::float16_t, F32>;
using U16 = hn::Rebind<uint16_t, F32>;
using U32 = hn::Rebind<uint32_t, F32>;

// Highway's scalar conversions of half floats lose NaN; ours is the portable one.
constexpr bool kVectorHalf = HWY_TARGET != HWY_SCALAR;

void HalfToFloat(const Half* from, float* to, size_t count) {
  const F32 d;
  const F16 d16;
  const size_t lanes = hn::Lanes(d);
  const auto* in = reinterpret_cast<const hwy::float16_t*>(from);
  size_t i = 0;
  for (; kVectorHalf && i + lanes <= count; i += lanes) {
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(d16, in + i)), d, to + i);
  }
  for (; i < count; ++i) to[i] = static_cast<float>(from[i]);
}

void FloatToHalf(const float* from, Half* to, size_t count) {
  const F32 d;
  const F16 d16;
  const size_t lanes = hn::Lanes(d);
  auto* out = reinterpret_cast<hwy::float16_t*>(to);
  size_t i = 0;
  for (; kVectorHalf && i + lanes <= count; i += lanes) {
    hn::StoreU(hn::DemoteTo(d16, hn::LoadU(d, from + i)), d16, out + i);
  }
  for (; i < count; ++i) to[i] = Half(from[i]);
}

void BFloat16ToFloat(const BFloat16* from, float* to, size_t count) {
  const F32 d;
  const U16 d16;
  const U32 d32;
  const size_t lanes = hn::Lanes(d);
  const auto* in = reinterpret_cast<const uint16_t*>(from);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto bits = hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(d16, in + i)));
    hn::StoreU(hn::BitCast(d, bits), d, to + i);
  }
  for (; i < count; ++i) to[i] = static_cast<float>(from[i]);
}

// Highway's own demotion cuts the lower bits; ours rounds to nearest even.
void FloatToBFloat16(const float* from, BFloat16* to, size_t count) {
  const F32 d;
  const U16 d16;
  const U32 d32;
  const size_t lanes = hn::Lanes(d);
  auto* out = reinterpret_cast<uint16_t*>(to);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto v = hn::LoadU(d, from + i);
    const auto bits = hn::BitCast(d32, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1u));
    const auto rounded = hn::Add(hn::Add(bits, hn::Set(d32, 0x7FFFu)), odd);
    const auto quiet = hn::Or(bits, hn::Set(d32, 0x00400000u));
    const auto nan = hn::RebindMask(d32, hn::IsNaN(v));
    const auto upper = hn::ShiftRight<16>(hn::IfThenElse(nan, quiet, rounded));
    hn::StoreU(hn::TruncateTo(d16, upper), d16, out + i);
  }
  for (; i < count; ++i) to[i] = BFloat16(from[i]);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace whimbrel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace whimbrel {
namespace {

HWY_EXPORT(HalfToFloat);
HWY_EXPORT(FloatToHalf);
HWY_EXPORT(BFloat16ToFloat);
HWY_EXPORT(FloatToBFloat16);

// A run of this length takes a few microseconds: about what waking a thread costs.
constexpr int64_t kGrain = 32768;

}  // namespace

void ToFloat(DType type, const void* from, float* to, int64_t count) {
  SettleHighwayTargets();
  ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    const auto n = static_cast<size_t>(end - begin);
    if (type == DType::kFloat16) {
      HWY_DYNAMIC_DISPATCH(HalfToFloat)(static_cast<const Half*>(from) + begin, to + begin, n);
    } else if (type == DType::kBFloat16) {
      HWY_DYNAMIC_DISPATCH(BFloat16ToFloat)
      (static_cast<const BFloat16*>(from) + begin, to + begin, n);
    } else {
      std::memcpy(to + begin, static_cast<const float*>(from) + begin, n * sizeof(float));
    }
  });
}

void FromFloat(DType type, const float* from, void* to, int64_t count) {
  SettleHighwayTargets();
  ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    const auto n = static_cast<size_t>(end - begin);
    if (type == DType::kFloat16) {
      HWY_DYNAMIC_DISPATCH(FloatToHalf)(from + begin, static_cast<Half*>(to) + begin, n);
    } else if (type == DType::kBFloat16) {
      HWY_DYNAMIC_DISPATCH(FloatToBFloat16)(from + begin, static_cast<BFloat16*>(to) + begin, n);
    } else {
      std::memcpy(static_cast<float*>(to) + begin, from + begin, n * sizeof(float));
    }
  });
}

}  // namespace whimbrel

#endif
