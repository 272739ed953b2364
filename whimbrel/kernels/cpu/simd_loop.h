// WHIMBREL_SIMD_LOOP: before a loop whose iterations do not depend on each other. At -O2 GCC
// vectorises only loops of a known length, others when told so.

#pragma once

#if defined(_OPENMP)
#define WHIMBREL_SIMD_LOOP _Pragma("omp simd")
#else
#define WHIMBREL_SIMD_LOOP
#endif
