// The cap on Highway's run-time dispatch.

#include "whimbrel/kernels/cpu/hwy_targets.h"

#include <hwy/highway.h>

#include "whimbrel/base/cpu.h"

namespace whimbrel {

void SettleHighwayTargets() {
  [[maybe_unused]] static const bool settled = [] {
    constexpr int64_t kAvx512 = HWY_AVX3 | HWY_AVX3_DL;
    switch (ActiveIsa()) {
      case Isa::kAvx512:
        break;
      case Isa::kAvx2:
        hwy::DisableTargets(kAvx512);
        break;
      case Isa::kPortable:
        hwy::DisableTargets(kAvx512 | HWY_AVX2 | HWY_SSE4 | HWY_SSSE3);
        break;
    }
    return true;
  }();
}

}  // namespace whimbrel
