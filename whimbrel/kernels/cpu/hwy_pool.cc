// Windows of channels-last data: a vector of channels at a time, every tap once.

#include "whimbrel/kernels/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "whimbrel/kernels/cpu/hwy_pool.cc"
#include <algorithm>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "whimbrel/kernels/cpu/hwy_map-inl.h"
#include "whimbrel/kernels/cpu/hwy_pool.h"

HWY_BEFORE_NAMESPACE();
namespace whimbrel {
namespace HWY_NAMESPACE {
namespace {

template <bool kMax, int kVectors>
HWY_INLINE void Block(const float* in, PoolWindow window, int64_t row_stride, int64_t column_stride,
                      size_t live, float scale, float* out) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  const auto load = [&](const float* from, size_t v) HWY_ATTR {
    return kVectors == 1 ? hn::MaskedLoad(hn::FirstN(d, live), d, from)
                         : hn::LoadU(d, from + v * lanes);
  };
  F32Vec result[kVectors];
  for (size_t v = 0; v < kVectors; ++v) result[v] = load(in, v);
  for (int64_t r = 0; r < window.rows; ++r) {
    for (int64_t k = r == 0 ? 1 : 0; k < window.columns; ++k) {
      const float* from = in + r * row_stride + k * column_stride;
      for (size_t v = 0; v < kVectors; ++v) {
        const F32Vec tap = load(from, v);
        result[v] = kMax ? MaxNan(result[v], tap) : hn::Add(result[v], tap);
      }
    }
  }
  for (size_t v = 0; v < kVectors; ++v) {
    if (!kMax) result[v] = hn::Mul(result[v], hn::Set(d, scale));
    if (kVectors == 1) {
      hn::BlendedStore(result[v], hn::FirstN(d, live), d, out);
    } else {
      hn::StoreU(result[v], d, out + v * lanes);
    }
  }
}

template <bool kMax>
void Pool(const float* in, PoolWindow window, int64_t row_stride, int64_t column_stride,
          int64_t channels, float scale, float* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F32()));
  int64_t c = 0;
  for (; c + 4 * lanes <= channels; c += 4 * lanes) {
    Block<kMax, 4>(in + c, window, row_stride, column_stride, 0, scale, out + c);
  }
  for (; c < channels; c += lanes) {
    Block<kMax, 1>(in + c, window, row_stride, column_stride,
                   static_cast<size_t>(std::min(lanes, channels - c)), scale, out + c);
  }
}

}  // namespace

PoolFunction MaxPoolOf() {
  return Pool<true>;
}
PoolFunction AveragePoolOf() {
  return Pool<false>;
}

}  // namespace HWY_NAMESPACE
}  // namespace whimbrel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace whimbrel {

HWY_EXPORT(MaxPoolOf);
HWY_EXPORT(AveragePoolOf);

PoolFunction FindMaxPool() {
  SettleHighwayTargets();
  return HWY_DYNAMIC_DISPATCH(MaxPoolOf)();
}
PoolFunction FindAveragePool() {
  SettleHighwayTargets();
  return HWY_DYNAMIC_DISPATCH(AveragePoolOf)();
}

}  // namespace whimbrel
#endif  // HWY_ONCE
