// One GRU step over the hidden units, all gates in registers.

#include "whimbrel/kernels/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "whimbrel/kernels/cpu/gru_cell.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "whimbrel/kernels/cpu/gru_cell.h"
#include "whimbrel/kernels/cpu/hwy_exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace whimbrel {
namespace HWY_NAMESPACE {
namespace {

// Calls step(load, store) for each vector of units: load(p) and store(v, p) go to p + its offset.
template <typename Step>
HWY_INLINE void EachVector(size_t count, Step step) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    step([&](const float* p) HWY_ATTR { return hn::LoadU(d, p + i); },
         [&](F32Vec v, float* p) HWY_ATTR { hn::StoreU(v, d, p + i); });
  }
  if (i == count) return;
  const auto mask = hn::FirstN(d, count - i);
  step([&](const float* p) HWY_ATTR { return hn::MaskedLoad(mask, d, p + i); },
       [&](F32Vec v, float* p) HWY_ATTR { hn::BlendedStore(v, mask, d, p + i); });
}

// (1 - z) candidate + z h
HWY_INLINE F32Vec Mixed(F32Vec z, F32Vec candidate, F32Vec h) {
  return hn::MulAdd(z, h, hn::Mul(hn::Sub(S(1), z), candidate));
}

void Cell(const float* input, const float* state, size_t hidden, const float* h, float* out) {
  const float* const input_r = input + hidden;
  const float* const input_h = input_r + hidden;
  const float* const state_r = state + hidden;
  const float* const state_h = state_r + hidden;
  EachVector(hidden, [&](auto load, auto store) HWY_ATTR {
    const F32Vec z = SigmoidOf(hn::Add(load(input), load(state)));
    const F32Vec r = SigmoidOf(hn::Add(load(input_r), load(state_r)));
    store(Mixed(z, TanhOf(hn::MulAdd(r, load(state_h), load(input_h))), load(h)), out);
  });
}

void Gates(const float* input, const float* state, size_t hidden, const float* h, float* z,
           float* reset) {
  const float* const input_r = input + hidden;
  const float* const state_r = state + hidden;
  EachVector(hidden, [&](auto load, auto store) HWY_ATTR {
    store(SigmoidOf(hn::Add(load(input), load(state))), z);
    store(hn::Mul(SigmoidOf(hn::Add(load(input_r), load(state_r))), load(h)), reset);
  });
}

void Mix(const float* input, const float* state, size_t hidden, const float* z, const float* h,
         float* out) {
  EachVector(hidden, [&](auto load, auto store) HWY_ATTR {
    store(Mixed(load(z), TanhOf(hn::Add(load(input), load(state))), load(h)), out);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace whimbrel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace whimbrel {
namespace {

HWY_EXPORT(Cell);
HWY_EXPORT(Gates);
HWY_EXPORT(Mix);

}  // namespace

void GruCell(const float* input, const float* state, int64_t hidden, const float* h, float* out) {
  SettleHighwayTargets();
  HWY_DYNAMIC_DISPATCH(Cell)(input, state, static_cast<size_t>(hidden), h, out);
}

void GruGates(const float* input, const float* state, int64_t hidden, const float* h, float* z,
              float* reset) {
  SettleHighwayTargets();
  HWY_DYNAMIC_DISPATCH(Gates)(input, state, static_cast<size_t>(hidden), h, z, reset);
}

void GruMix(const float* input, const float* state, int64_t hidden, const float* z, const float* h,
            float* out) {
  SettleHighwayTargets();
  HWY_DYNAMIC_DISPATCH(Mix)(input, state, static_cast<size_t>(hidden), z, h, out);
}

}  // namespace whimbrel

#endif
