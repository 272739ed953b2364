// One LSTM step over the hidden units, all gates in registers.

#include "whimbrel/kernels/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "whimbrel/kernels/cpu/lstm_cell.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "whimbrel/kernels/cpu/hwy_exp-inl.h"
#include "whimbrel/kernels/cpu/lstm_cell.h"

HWY_BEFORE_NAMESPACE();
namespace whimbrel {
namespace HWY_NAMESPACE {
namespace {

struct Step {
  F32Vec c, h;
};

HWY_INLINE Step StepOf(F32Vec input, F32Vec output, F32Vec forget, F32Vec cell, F32Vec c) {
  const F32Vec next = hn::MulAdd(SigmoidOf(forget), c, hn::Mul(SigmoidOf(input), TanhOf(cell)));
  return {next, hn::Mul(SigmoidOf(output), TanhOf(next))};
}

void Cell(const float* gates, size_t hidden, float* c, float* h) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= hidden; i += lanes) {
    const Step step = StepOf(hn::LoadU(d, gates + i), hn::LoadU(d, gates + hidden + i),
                             hn::LoadU(d, gates + 2 * hidden + i),
                             hn::LoadU(d, gates + 3 * hidden + i), hn::LoadU(d, c + i));
    hn::StoreU(step.c, d, c + i);
    hn::StoreU(step.h, d, h + i);
  }
  if (i == hidden) return;
  const auto mask = hn::FirstN(d, hidden - i);
  const Step step =
      StepOf(hn::MaskedLoad(mask, d, gates + i), hn::MaskedLoad(mask, d, gates + hidden + i),
             hn::MaskedLoad(mask, d, gates + 2 * hidden + i),
             hn::MaskedLoad(mask, d, gates + 3 * hidden + i), hn::MaskedLoad(mask, d, c + i));
  hn::BlendedStore(step.c, mask, d, c + i);
  hn::BlendedStore(step.h, mask, d, h + i);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace whimbrel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace whimbrel {
namespace {

HWY_EXPORT(Cell);

}  // namespace

void LstmCell(const float* gates, int64_t hidden, float* c, float* h) {
  SettleHighwayTargets();
  HWY_DYNAMIC_DISPATCH(Cell)(gates, static_cast<size_t>(hidden), c, h);
}

}  // namespace whimbrel

#endif
