// Reductions along rows (inner = 1) and down columns.

#include "whimbrel/kernels/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "whimbrel/kernels/cpu/hwy_reduce.cc"
#include <algorithm>
#include <array>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "whimbrel/base/threads.h"
#include "whimbrel/kernels/cpu/hwy_map-inl.h"
#include "whimbrel/kernels/cpu/hwy_reduce.h"

HWY_BEFORE_NAMESPACE();
namespace whimbrel {
namespace HWY_NAMESPACE {
namespace {

// Plain additions before a partial sum is put aside with its rounding error: 2550 values of +-2
// that cancel were 3e-5 off with 64 plain additions and a plain total, and are 3.5e-6 off so.
constexpr int64_t kPartial = 8;

struct AddOp {
  static constexpr bool kSum = true;
  HWY_INLINE F32Vec operator()(F32Vec a, F32Vec b) const { return hn::Add(a, b); }
};
struct MaxOp {
  static constexpr bool kSum = false;
  HWY_INLINE F32Vec operator()(F32Vec a, F32Vec b) const { return MaxNan(a, b); }
  float operator()(float a, float b) const { return a != a || a > b ? a : b; }
};
struct MinOp {
  static constexpr bool kSum = false;
  HWY_INLINE F32Vec operator()(F32Vec a, F32Vec b) const { return MinNan(a, b); }
  float operator()(float a, float b) const { return a != a || a < b ? a : b; }
};

// What has been reduced so far; a sum keeps its rounding errors apart (Knuth's two-sum).
template <typename Op>
struct Total {
  F32Vec high;
  F32Vec low;

  HWY_INLINE void Join(F32Vec part) {
    const F32Vec joined = Op()(high, part);
    if constexpr (Op::kSum) {
      const F32Vec rest = hn::Sub(joined, high);
      low = hn::Add(low, hn::Add(hn::Sub(high, hn::Sub(joined, rest)), hn::Sub(part, rest)));
    }
    high = joined;
  }
  // Infinite sums have NaN for an error.
  HWY_INLINE F32Vec Error() const { return hn::IfThenZeroElse(hn::IsNaN(low), low); }
};

// The lanes of a total and the elements that were too few for a vector.
template <typename Op>
HWY_INLINE double Finish(const Total<Op>& total, const float* rest, int64_t count) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  HWY_ALIGN std::array<float, HWY_MAX_BYTES / sizeof(float)> high;
  hn::StoreU(total.high, d, high.data());
  if constexpr (Op::kSum) {
    HWY_ALIGN std::array<float, HWY_MAX_BYTES / sizeof(float)> low;
    hn::StoreU(total.Error(), d, low.data());
    double sum = 0;
    for (size_t k = 0; k < lanes; ++k)
      sum += static_cast<double>(high[k]) + static_cast<double>(low[k]);
    for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(rest[i]);
    return sum;
  } else {
    float result = high[0];
    for (size_t k = 1; k < lanes; ++k) result = Op()(result, high[k]);
    for (int64_t i = 0; i < count; ++i) result = Op()(result, rest[i]);
    return static_cast<double>(result);
  }
}

template <typename Op>
HWY_INLINE double Row(const float* x, int64_t count, Op op) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (count < lanes) {
    if constexpr (Op::kSum) {
      double sum = 0;
      for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]);
      return sum;
    } else {
      float result = x[0];
      for (int64_t i = 1; i < count; ++i) result = op(result, x[i]);
      return static_cast<double>(result);
    }
  }
  // the total starts as the first vector, so that no neutral element is needed
  Total<Op> total{hn::LoadU(d, x), hn::Zero(d)};
  int64_t i = lanes;
  while (i + 4 * lanes <= count) {
    const int64_t end = std::min(count, i + 4 * lanes * kPartial);
    F32Vec a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + lanes);
    F32Vec c = hn::LoadU(d, x + i + 2 * lanes), e = hn::LoadU(d, x + i + 3 * lanes);
    for (i += 4 * lanes; i + 4 * lanes <= end; i += 4 * lanes) {
      a = op(a, hn::LoadU(d, x + i));
      b = op(b, hn::LoadU(d, x + i + lanes));
      c = op(c, hn::LoadU(d, x + i + 2 * lanes));
      e = op(e, hn::LoadU(d, x + i + 3 * lanes));
    }
    total.Join(op(op(a, b), op(c, e)));
  }
  for (; i + lanes <= count; i += lanes) total.Join(hn::LoadU(d, x + i));
  return Finish(total, x + i, count - i);
}

// 4 columns of vectors at once, or one of `live` lanes.
template <int kVectors, typename Op>
HWY_INLINE void ColumnBlock(const float* x, int64_t count, int64_t stride, size_t live, float scale,
                            float* y, Op op) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  const auto load = [&](const float* from, size_t v) HWY_ATTR {
    return kVectors == 1 ? hn::MaskedLoad(hn::FirstN(d, live), d, from)
                         : hn::LoadU(d, from + v * lanes);
  };
  Total<Op> total[kVectors];
  for (size_t v = 0; v < kVectors; ++v) total[v] = {load(x, v), hn::Zero(d)};
  for (int64_t r = 1; r < count;) {
    const int64_t end = std::min(count, r + kPartial);
    F32Vec part[kVectors];
    for (size_t v = 0; v < kVectors; ++v) part[v] = load(x + r * stride, v);
    for (++r; r < end; ++r) {
      for (size_t v = 0; v < kVectors; ++v) part[v] = op(part[v], load(x + r * stride, v));
    }
    for (size_t v = 0; v < kVectors; ++v) total[v].Join(part[v]);
  }
  const F32Vec factor = hn::Set(d, scale);
  for (size_t v = 0; v < kVectors; ++v) {
    F32Vec result = total[v].high;
    if constexpr (Op::kSum) result = hn::Mul(hn::Add(result, total[v].Error()), factor);
    if (kVectors == 1) {
      hn::BlendedStore(result, hn::FirstN(d, live), d, y);
    } else {
      hn::StoreU(result, d, y + v * lanes);
    }
  }
}

template <typename Op>
void Columns(const float* x, int64_t count, int64_t stride, int64_t width, float scale, float* y,
             Op op) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F32()));
  int64_t i = 0;
  for (; i + 4 * lanes <= width; i += 4 * lanes) {
    ColumnBlock<4>(x + i, count, stride, 0, scale, y + i, op);
  }
  for (; i < width; i += lanes) {
    ColumnBlock<1>(x + i, count, stride, static_cast<size_t>(std::min(lanes, width - i)), scale,
                   y + i, op);
  }
}

template <typename Op>
void Rows(const float* x, int64_t rows, int64_t count, float scale, float* y, Op op) {
  for (int64_t r = 0; r < rows; ++r) {
    y[r] = static_cast<float>(Row(x + r * count, count, op) * static_cast<double>(scale));
  }
}

}  // namespace

void ReduceRows(Reduction reduction, const float* x, int64_t rows, int64_t count, float scale,
                float* y) {
  switch (reduction) {
    case Reduction::kSum:
    case Reduction::kMean:
      return Rows(x, rows, count, scale, y, AddOp());
    case Reduction::kMax:
      return Rows(x, rows, count, 1, y, MaxOp());
    case Reduction::kMin:
      return Rows(x, rows, count, 1, y, MinOp());
  }
}

void ReduceColumns(Reduction reduction, const float* x, int64_t count, int64_t stride,
                   int64_t width, float scale, float* y) {
  switch (reduction) {
    case Reduction::kSum:
    case Reduction::kMean:
      return Columns(x, count, stride, width, scale, y, AddOp());
    case Reduction::kMax:
      return Columns(x, count, stride, width, 1, y, MaxOp());
    case Reduction::kMin:
      return Columns(x, count, stride, width, 1, y, MinOp());
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace whimbrel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace whimbrel {

HWY_EXPORT(ReduceRows);
HWY_EXPORT(ReduceColumns);

void ReduceMiddle(Reduction reduction, const float* x, int64_t outer, int64_t count, int64_t inner,
                  float* y) {
  SettleHighwayTargets();
  const float scale =
      reduction == Reduction::kMean ? static_cast<float>(1.0 / static_cast<double>(count)) : 1.0f;
  constexpr int64_t kGrain = 65536;  // elements read: about 4 us
  if (inner == 1) {
    ParallelFor(outer, 1 + kGrain / count, [&](int64_t begin, int64_t end) {
      HWY_DYNAMIC_DISPATCH(ReduceRows)
      (reduction, x + begin * count, end - begin, count, scale, y + begin);
    });
    return;
  }
  constexpr int64_t kStrip = 64;  // columns that one thread takes at least: 4 cache lines
  const int64_t strips = (inner + kStrip - 1) / kStrip;
  ParallelFor(outer * strips, 1 + kGrain / (count * kStrip), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end;) {
      const int64_t o = k / strips;
      const int64_t last = std::min(end, (o + 1) * strips);  // strips of one outer step go together
      const int64_t from = (k - o * strips) * kStrip;
      const int64_t to = std::min(inner, (last - o * strips) * kStrip);
      HWY_DYNAMIC_DISPATCH(ReduceColumns)
      (reduction, x + o * count * inner + from, count, inner, to - from, scale,
       y + o * inner + from);
      k = last;
    }
  });
}

}  // namespace whimbrel
#endif  // HWY_ONCE
