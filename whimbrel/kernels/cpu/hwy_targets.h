// Highway targets: which are compiled (AVX-512, AVX2, scalar), and WHIMBREL_ISA obeyed at run time.
// Include this before <hwy/highway.h>.

#pragma once

// f32 arithmetic gains nothing from SSE4 on the machines we serve nor from AVX3_DL's byte shuffles;
// each target left out saves its share of compile time.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#endif

namespace whimbrel {

// Caps Highway's dynamic dispatch by ActiveIsa(), once; call before HWY_DYNAMIC_DISPATCH.
void SettleHighwayTargets();

}  // namespace whimbrel
