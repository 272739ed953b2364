// Loops over f32 runs with a masked tail, for files that foreach_target includes once per target.

// Per-target include guard
#if defined(WHIMBREL_KERNELS_CPU_HWY_MAP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WHIMBREL_KERNELS_CPU_HWY_MAP_INL_H_
#undef WHIMBREL_KERNELS_CPU_HWY_MAP_INL_H_
#else
#define WHIMBREL_KERNELS_CPU_HWY_MAP_INL_H_
#endif

#include <cstddef>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace whimbrel {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using F32Vec = hn::Vec<F32>;

// out[i] = f(in[i])
template <typename F>
HWY_INLINE void MapOne(const float* in, float* out, size_t count, F f) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(f(hn::LoadU(d, in + i)), d, out + i);
  if (i < count) {
    const auto mask = hn::FirstN(d, count - i);
    hn::BlendedStore(f(hn::MaskedLoad(mask, d, in + i)), mask, d, out + i);
  }
}

// out[i] = f(a[i], b[i])
template <typename F>
HWY_INLINE void MapTwo(const float* a, const float* b, float* out, size_t count, F f) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(f(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
  }
  if (i < count) {
    const auto mask = hn::FirstN(d, count - i);
    hn::BlendedStore(f(hn::MaskedLoad(mask, d, a + i), hn::MaskedLoad(mask, d, b + i)), mask, d,
                     out + i);
  }
}

// The larger / smaller; NaN of either side wins.
HWY_INLINE F32Vec MaxNan(F32Vec a, F32Vec b) {
  return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
}
HWY_INLINE F32Vec MinNan(F32Vec a, F32Vec b) {
  return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b);
}
// v into [low, high]; NaN stays. When low > high, high wins.
HWY_INLINE F32Vec ClampNan(F32Vec v, F32Vec low, F32Vec high) {
  v = hn::IfThenElse(hn::Lt(v, low), low, v);
  return hn::IfThenElse(hn::Gt(v, high), high, v);
}

}  // namespace HWY_NAMESPACE
}  // namespace whimbrel
HWY_AFTER_NAMESPACE();

#endif
