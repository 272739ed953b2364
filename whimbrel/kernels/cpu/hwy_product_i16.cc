// Products of pairs of 16-bit numbers, summed in 32 bits.

#include "whimbrel/kernels/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "whimbrel/kernels/cpu/hwy_product_i16.cc"
#include <algorithm>
#include <cstring>
#include <limits>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "whimbrel/kernels/cpu/hwy_product_i16.h"
#include "whimbrel/kernels/cpu/simd_loop.h"

HWY_BEFORE_NAMESPACE();
namespace whimbrel {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Targets that multiply neighbouring pairs in one instruction.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL

using I32 = hn::ScalableTag<int32_t>;
using I16 = hn::Repartition<int16_t, I32>;
using I32Vec = hn::Vec<I32>;
using I16Vec = hn::Vec<I16>;

int64_t Width() {
  return static_cast<int64_t>(2 * hn::Lanes(I32()));
}

HWY_INLINE I16Vec Pair(const int16_t* a) {
  int32_t both;
  std::memcpy(&both, a, sizeof(both));
  return hn::BitCast(I16(), hn::Set(I32(), both));
}

HWY_INLINE void Add(I32Vec& sum, I16Vec a, I16Vec b) {
  I32Vec unused = hn::Zero(I32());
  sum = hn::ReorderWidenMulAccumulate(I32(), a, b, sum, unused);
}

// Four rows times one panel: eight sums and the pair of panel vectors fit 16 registers.
HWY_INLINE void FourRows(const int16_t* a, int64_t a_stride, const int16_t* panel, int64_t pairs,
                         int32_t* y, int64_t y_stride) {
  const I32 d;
  const I16 d16;
  const size_t lanes = hn::Lanes(d);
  I32Vec s00 = hn::Zero(d), s01 = s00, s10 = s00, s11 = s00, s20 = s00, s21 = s00, s30 = s00,
         s31 = s00;
  const int16_t* const a1 = a + a_stride;
  const int16_t* const a2 = a1 + a_stride;
  const int16_t* const a3 = a2 + a_stride;
  for (int64_t k = 0; k < pairs; ++k, panel += 4 * lanes) {
    const I16Vec b0 = hn::LoadU(d16, panel), b1 = hn::LoadU(d16, panel + 2 * lanes);
    const I16Vec v0 = Pair(a + 2 * k);
    Add(s00, v0, b0);
    Add(s01, v0, b1);
    const I16Vec v1 = Pair(a1 + 2 * k);
    Add(s10, v1, b0);
    Add(s11, v1, b1);
    const I16Vec v2 = Pair(a2 + 2 * k);
    Add(s20, v2, b0);
    Add(s21, v2, b1);
    const I16Vec v3 = Pair(a3 + 2 * k);
    Add(s30, v3, b0);
    Add(s31, v3, b1);
  }
  const auto store = [&](I32Vec low, I32Vec high, int64_t row) HWY_ATTR {
    hn::StoreU(low, d, y + row * y_stride);
    hn::StoreU(high, d, y + row * y_stride + lanes);
  };
  store(s00, s01, 0);
  store(s10, s11, 1);
  store(s20, s21, 2);
  store(s30, s31, 3);
}

HWY_INLINE void OneRow(const int16_t* a, const int16_t* panel, int64_t pairs, int32_t* y) {
  const I32 d;
  const I16 d16;
  const size_t lanes = hn::Lanes(d);
  // even and odd pairs apart: an addition waits for the one before it
  I32Vec s00 = hn::Zero(d), s01 = s00, s10 = s00, s11 = s00;
  int64_t k = 0;
  for (; k + 2 <= pairs; k += 2, panel += 8 * lanes) {
    const I16Vec v0 = Pair(a + 2 * k), v1 = Pair(a + 2 * k + 2);
    Add(s00, v0, hn::LoadU(d16, panel));
    Add(s01, v0, hn::LoadU(d16, panel + 2 * lanes));
    Add(s10, v1, hn::LoadU(d16, panel + 4 * lanes));
    Add(s11, v1, hn::LoadU(d16, panel + 6 * lanes));
  }
  if (k < pairs) {
    const I16Vec v = Pair(a + 2 * k);
    Add(s00, v, hn::LoadU(d16, panel));
    Add(s01, v, hn::LoadU(d16, panel + 2 * lanes));
  }
  hn::StoreU(hn::Add(s00, s10), d, y);
  hn::StoreU(hn::Add(s01, s11), d, y + lanes);
}

#else

constexpr int64_t kWidth = 8;

int64_t Width() {
  return kWidth;
}

void OneRow(const int16_t* a, const int16_t* panel, int64_t pairs, int32_t* y) {
  uint32_t sums[kWidth] = {};
  for (int64_t k = 0; k < pairs; ++k, a += 2, panel += 2 * kWidth) {
    for (int64_t j = 0; j < kWidth; ++j) {
      sums[j] += static_cast<uint32_t>(a[0] * panel[2 * j] + a[1] * panel[2 * j + 1]);
    }
  }
  std::memcpy(y, sums, sizeof(sums));
}

void FourRows(const int16_t* a, int64_t a_stride, const int16_t* panel, int64_t pairs, int32_t* y,
              int64_t y_stride) {
  for (int64_t row = 0; row < 4; ++row)
    OneRow(a + row * a_stride, panel, pairs, y + row * y_stride);
}

#endif

constexpr int64_t kMostColumns = 32;

void Panel(const int16_t* a, int64_t rows, const int16_t* panel, int64_t pairs, int64_t cols,
           int32_t* y, int64_t y_stride) {
  const bool whole = cols == Width();
  int32_t kept[4 * kMostColumns];
  for (int64_t row = 0; row < rows;) {
    const int64_t count = row + 4 <= rows ? 4 : 1;
    int32_t* const to = whole ? y + row * y_stride : kept;
    if (count == 4) {
      FourRows(a + row * pairs * 2, pairs * 2, panel, pairs, to, whole ? y_stride : kMostColumns);
    } else {
      OneRow(a + row * pairs * 2, panel, pairs, to);
    }
    for (int64_t i = 0; !whole && i < count; ++i) {
      std::copy_n(kept + i * kMostColumns, cols, y + (row + i) * y_stride);
    }
    row += count;
  }
}

template <typename T>
void Widen(const T* from, int32_t zero, int16_t* to, int64_t count) {
  const auto less = static_cast<int16_t>(zero);
  WHIMBREL_SIMD_LOOP
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<int16_t>(from[i] - less);
}

template <typename T>
void Products(const T* x, int32_t zero, const int16_t* w, int32_t* sums, int64_t count) {
  WHIMBREL_SIMD_LOOP
  for (int64_t i = 0; i < count; ++i) sums[i] += (x[i] - zero) * w[i];
}

template <typename Q, bool has_bias, bool each>
void Requantize(const int32_t* sums, const Requantizer& how, Q* y, int64_t count) {
  const int32_t* const bias = how.bias;
  const float* const factor = how.factor;
  const auto zero = static_cast<float>(how.zero);
  const float low = static_cast<float>(std::numeric_limits<Q>::min()) - zero;
  const float high = static_cast<float>(std::numeric_limits<Q>::max()) - zero;
  constexpr float kRound = 3 << 22;  // has no fraction to spare: adding it rounds
  WHIMBREL_SIMD_LOOP
  for (int64_t i = 0; i < count; ++i) {
    const auto more = has_bias ? static_cast<uint32_t>(bias[i]) : 0;
    const auto sum = static_cast<int32_t>(static_cast<uint32_t>(sums[i]) + more);
    float v = static_cast<float>(sum) * factor[each ? i : 0];
    v = v > low ? v : low;  // NaN too
    v = v < high ? v : high;
    y[i] = static_cast<Q>(static_cast<int32_t>((v + kRound) - kRound + zero));
  }
}

template <typename Q>
void RequantizeAs(const int32_t* sums, const Requantizer& how, Q* y, int64_t count) {
  if (how.bias != nullptr) {
    (how.each ? Requantize<Q, true, true> : Requantize<Q, true, false>)(sums, how, y, count);
  } else {
    (how.each ? Requantize<Q, false, true> : Requantize<Q, false, false>)(sums, how, y, count);
  }
}

void RequantizeI8(const int32_t* sums, const Requantizer& how, int8_t* y, int64_t count) {
  RequantizeAs(sums, how, y, count);
}
void RequantizeU8(const int32_t* sums, const Requantizer& how, uint8_t* y, int64_t count) {
  RequantizeAs(sums, how, y, count);
}
void WidenI8(const int8_t* from, int32_t zero, int16_t* to, int64_t count) {
  Widen(from, zero, to, count);
}
void WidenU8(const uint8_t* from, int32_t zero, int16_t* to, int64_t count) {
  Widen(from, zero, to, count);
}
void ProductsI8(const int8_t* x, int32_t zero, const int16_t* w, int32_t* sums, int64_t count) {
  Products(x, zero, w, sums, count);
}
void ProductsU8(const uint8_t* x, int32_t zero, const int16_t* w, int32_t* sums, int64_t count) {
  Products(x, zero, w, sums, count);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace whimbrel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace whimbrel {
namespace {

HWY_EXPORT(Width);
HWY_EXPORT(Panel);
HWY_EXPORT(RequantizeI8);
HWY_EXPORT(RequantizeU8);
HWY_EXPORT(WidenI8);
HWY_EXPORT(WidenU8);
HWY_EXPORT(ProductsI8);
HWY_EXPORT(ProductsU8);

}  // namespace

int64_t PackedColumns::PanelWidth() {
  SettleHighwayTargets();
  return HWY_DYNAMIC_DISPATCH(Width)();
}

void PackedColumns::Multiply(const int16_t* a, int64_t rows, int64_t begin, int64_t end, int32_t* y,
                             int64_t y_stride) const {
  const int64_t depth = EvenDepth(depth_);
  for (int64_t panel = begin; panel < end; ++panel) {
    const int64_t first = panel * width_;
    HWY_DYNAMIC_DISPATCH(Panel)
    (a, rows, data() + first * depth, depth / 2, std::min(width_, cols_ - first), y + first,
     y_stride);
  }
}

template <>
void WidenRun(const int8_t* from, int32_t zero, int16_t* to, int64_t count) {
  HWY_DYNAMIC_DISPATCH(WidenI8)(from, zero, to, count);
}
template <>
void WidenRun(const uint8_t* from, int32_t zero, int16_t* to, int64_t count) {
  HWY_DYNAMIC_DISPATCH(WidenU8)(from, zero, to, count);
}
template <>
void AddProducts(const int8_t* x, int32_t zero, const int16_t* w, int32_t* sums, int64_t count) {
  HWY_DYNAMIC_DISPATCH(ProductsI8)(x, zero, w, sums, count);
}
template <>
void AddProducts(const uint8_t* x, int32_t zero, const int16_t* w, int32_t* sums, int64_t count) {
  HWY_DYNAMIC_DISPATCH(ProductsU8)(x, zero, w, sums, count);
}
template <>
void RequantizeRun(const int32_t* sums, const Requantizer& how, int8_t* y, int64_t count) {
  HWY_DYNAMIC_DISPATCH(RequantizeI8)(sums, how, y, count);
}
template <>
void RequantizeRun(const int32_t* sums, const Requantizer& how, uint8_t* y, int64_t count) {
  HWY_DYNAMIC_DISPATCH(RequantizeU8)(sums, how, y, count);
}

}  // namespace whimbrel

#endif
