// Compute threads: one OpenMP team per calling thread (a device stream); oneDNN and our loops share it.

#pragma once

#include <cstdint>

#include "whimbrel/base/function_ref.h"

namespace whimbrel {

// Threads of the team that parallel loops of the calling thread use. 0 = all cores this process may
// run on (affinity and cgroup quota respected). Call it once per stream thread.
void SetComputeThreads(int count);
int compute_threads();
int AvailableCores();

// Calls body(begin, end) over [0, count) on the team. A range is at least `grain` long, so that a
// call with count <= grain runs on the caller without waking anybody. body must not throw.
void ParallelFor(int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t)> body);

// libgomp reads its wait policy when it is loaded, before main: spinning workers lose 15x on a busy
// machine. Re-executes the program once with a short spin set when the user chose nothing.
// Call it first in main; library users set OMP_WAIT_POLICY themselves (docs/INSTALL.md).
void EnsureOpenMpWaitPolicy(char** argv);

}  // namespace whimbrel
