// fma_peak: a loop of fused multiply-adds that measures what one core can do at best.

#pragma once

#include <cstdint>

namespace whimbrel {

// Runs `rounds` rounds on the calling thread with the widest vectors that WHIMBREL_ISA allows and
// returns the float32 operations done (one multiply-add = 2). Allocates nothing.
double RunFmaLoop(int64_t rounds);

}  // namespace whimbrel
