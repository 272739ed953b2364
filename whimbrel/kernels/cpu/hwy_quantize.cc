// Quantising loops.

#include "whimbrel/kernels/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "whimbrel/kernels/cpu/hwy_quantize.cc"
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "whimbrel/kernels/cpu/hwy_map-inl.h"
#include "whimbrel/kernels/cpu/hwy_quantize.h"

HWY_BEFORE_NAMESPACE();
namespace whimbrel {
namespace HWY_NAMESPACE {
namespace {

using I32 = hn::Rebind<int32_t, F32>;
using I32Vec = hn::Vec<I32>;

template <typename Q>
HWY_INLINE F32Vec LoadFloats(const Q* from) {
  const hn::Rebind<Q, F32> d8;
  return hn::ConvertTo(F32(), hn::PromoteTo(I32(), hn::LoadU(d8, from)));
}

// Cut to Q's range before rounding, which integer bounds allow, so that no conversion overflows.
template <typename Q>
HWY_INLINE void QuantizeVector(F32Vec x, F32Vec scale, F32Vec zero, Q* y) {
  const F32 d;
  const hn::Rebind<Q, F32> d8;
  const F32Vec low = hn::Sub(hn::Set(d, static_cast<float>(std::numeric_limits<Q>::min())), zero);
  const F32Vec high = hn::Sub(hn::Set(d, static_cast<float>(std::numeric_limits<Q>::max())), zero);
  F32Vec v = hn::Div(x, scale);
  v = hn::IfThenElse(hn::Gt(v, low), v, low);
  v = hn::IfThenElse(hn::Lt(v, high), v, high);
  const I32Vec whole = hn::Add(hn::NearestInt(v), hn::NearestInt(zero));
  hn::StoreU(hn::DemoteTo(d8, whole), d8, y);
}

HWY_INLINE size_t TailOf(size_t count) {
  return count - count % hn::Lanes(F32());
}

// What does not fill a vector: inputs are copied to where one can be read whole.
constexpr size_t kMostLanes = HWY_MAX_BYTES / sizeof(float);
template <typename T>
HWY_INLINE std::array<T, kMostLanes> Padded(const T* from, size_t count, T fill) {
  std::array<T, kMostLanes> padded;
  padded.fill(fill);
  std::copy_n(from, count, padded.begin());
  return padded;
}

template <typename Q>
HWY_INLINE F32Vec FirstZero(const Q* zero) {
  return hn::Set(F32(), zero == nullptr ? 0.0F : static_cast<float>(*zero));
}

template <typename Q>
HWY_INLINE void QuantizeOne(const float* x, const float* scale, const Q* zero, Q* y, size_t count) {
  const F32 d;
  const F32Vec s = hn::Set(d, *scale), z = FirstZero(zero);
  const size_t end = TailOf(count), lanes = hn::Lanes(d);
  for (size_t i = 0; i < end; i += lanes) QuantizeVector(hn::LoadU(d, x + i), s, z, y + i);
  if (end == count) return;
  const auto rest = Padded(x + end, count - end, 0.0F);
  std::array<Q, kMostLanes> to;
  QuantizeVector(hn::LoadU(d, rest.data()), s, z, to.data());
  std::copy_n(to.begin(), count - end, y + end);
}

template <typename Q>
HWY_INLINE void QuantizeEach(const float* x, const float* scale, const Q* zero, Q* y,
                             size_t count) {
  const F32 d;
  const size_t end = TailOf(count), lanes = hn::Lanes(d);
  for (size_t i = 0; i < end; i += lanes) {
    const F32Vec z = zero == nullptr ? hn::Zero(d) : LoadFloats(zero + i);
    QuantizeVector(hn::LoadU(d, x + i), hn::LoadU(d, scale + i), z, y + i);
  }
  for (size_t i = end; i < count; ++i) {
    QuantizeOne(x + i, scale + i, zero == nullptr ? nullptr : zero + i, y + i, 1);
  }
}

template <typename Q>
HWY_INLINE void DequantizeOne(const Q* x, const float* scale, const Q* zero, float* y,
                              size_t count) {
  const F32 d;
  const F32Vec s = hn::Set(d, *scale), z = FirstZero(zero);
  const size_t end = TailOf(count), lanes = hn::Lanes(d);
  for (size_t i = 0; i < end; i += lanes) {
    hn::StoreU(hn::Mul(hn::Sub(LoadFloats(x + i), z), s), d, y + i);
  }
  if (end == count) return;
  const auto rest = Padded(x + end, count - end, Q{0});
  const F32Vec v = hn::Mul(hn::Sub(LoadFloats(rest.data()), z), s);
  hn::BlendedStore(v, hn::FirstN(d, count - end), d, y + end);
}

template <typename Q>
HWY_INLINE void DequantizeEach(const Q* x, const float* scale, const Q* zero, float* y,
                               size_t count) {
  const F32 d;
  const size_t end = TailOf(count), lanes = hn::Lanes(d);
  for (size_t i = 0; i < end; i += lanes) {
    const F32Vec z = zero == nullptr ? hn::Zero(d) : LoadFloats(zero + i);
    hn::StoreU(hn::Mul(hn::Sub(LoadFloats(x + i), z), hn::LoadU(d, scale + i)), d, y + i);
  }
  for (size_t i = end; i < count; ++i) {
    DequantizeOne(x + i, scale + i, zero == nullptr ? nullptr : zero + i, y + i, 1);
  }
}

// Highway's dispatch takes plain functions.
void QuantizeI8(const float* x, const RunScales<int8_t>& s, int8_t* y, size_t count) {
  (s.each ? QuantizeEach<int8_t> : QuantizeOne<int8_t>)(x, s.scale, s.zero, y, count);
}
void QuantizeU8(const float* x, const RunScales<uint8_t>& s, uint8_t* y, size_t count) {
  (s.each ? QuantizeEach<uint8_t> : QuantizeOne<uint8_t>)(x, s.scale, s.zero, y, count);
}
void DequantizeI8(const int8_t* x, const RunScales<int8_t>& s, float* y, size_t count) {
  (s.each ? DequantizeEach<int8_t> : DequantizeOne<int8_t>)(x, s.scale, s.zero, y, count);
}
void DequantizeU8(const uint8_t* x, const RunScales<uint8_t>& s, float* y, size_t count) {
  (s.each ? DequantizeEach<uint8_t> : DequantizeOne<uint8_t>)(x, s.scale, s.zero, y, count);
}

// Two vectors of each bound at a time: a comparison and a choice take longer than a load.
void Extend(const float* x, size_t count, float* low, float* high) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  F32Vec low0 = hn::Set(d, *low), low1 = low0, high0 = hn::Set(d, *high), high1 = high0;
  const auto add = [](F32Vec v, F32Vec& least, F32Vec& most) HWY_ATTR {
    least = hn::IfThenElse(hn::Lt(v, least), v, least);
    most = hn::IfThenElse(hn::Gt(v, most), v, most);
  };
  size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    add(hn::LoadU(d, x + i), low0, high0);
    add(hn::LoadU(d, x + i + lanes), low1, high1);
  }
  for (; i < count; i += lanes) {
    const auto some = hn::FirstN(d, std::min(lanes, count - i));
    add(hn::IfThenElse(some, hn::MaskedLoad(some, d, x + i), low0), low0, high0);
  }
  *low = hn::GetLane(hn::MinOfLanes(d, hn::Min(low0, low1)));
  *high = hn::GetLane(hn::MaxOfLanes(d, hn::Max(high0, high1)));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace whimbrel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace whimbrel {
namespace {

HWY_EXPORT(QuantizeI8);
HWY_EXPORT(QuantizeU8);
HWY_EXPORT(DequantizeI8);
HWY_EXPORT(DequantizeU8);
HWY_EXPORT(Extend);

}  // namespace

template <>
void QuantizeRun(const float* x, RunScales<int8_t> scales, int8_t* y, int64_t count) {
  SettleHighwayTargets();
  HWY_DYNAMIC_DISPATCH(QuantizeI8)(x, scales, y, static_cast<size_t>(count));
}
template <>
void QuantizeRun(const float* x, RunScales<uint8_t> scales, uint8_t* y, int64_t count) {
  SettleHighwayTargets();
  HWY_DYNAMIC_DISPATCH(QuantizeU8)(x, scales, y, static_cast<size_t>(count));
}
template <>
void DequantizeRun(const int8_t* x, RunScales<int8_t> scales, float* y, int64_t count) {
  SettleHighwayTargets();
  HWY_DYNAMIC_DISPATCH(DequantizeI8)(x, scales, y, static_cast<size_t>(count));
}
template <>
void DequantizeRun(const uint8_t* x, RunScales<uint8_t> scales, float* y, int64_t count) {
  SettleHighwayTargets();
  HWY_DYNAMIC_DISPATCH(DequantizeU8)(x, scales, y, static_cast<size_t>(count));
}

void ExtendRange(const float* x, int64_t count, float& low, float& high) {
  SettleHighwayTargets();
  HWY_DYNAMIC_DISPATCH(Extend)(x, static_cast<size_t>(count), &low, &high);
}

}  // namespace whimbrel

#endif
