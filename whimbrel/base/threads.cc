// The OpenMP team of each calling thread, and how many cores this process may use.

#include "whimbrel/base/threads.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sched.h>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <unistd.h>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace whimbrel {
namespace {

// Iterations that a waiting thread spins before it sleeps in the kernel; one takes 50 ns, so this is
// 0.5 ms: longer than the serial stretches between two parallel loops of a model. P50 in ms on two
// cores, ppocr_v4_det 320x320 / mtcnn_onet:
//   iterations      300         1000        3000        10000       100000
//   quiet           1.60 0.33   0.84 0.16   0.78 0.16   0.77 0.15   0.79 0.16
//   two busy loops  4.38 0.39   -           1.40 0.18   1.10 0.18   1.19 0.18, P95 0.45 -> 4.2
// Spinning without end, libgomp's default, starves others on a busy machine and is starved itself.
constexpr const char* kSpinCount = "10000";
constexpr const char* kMarker = "WHIMBREL_OMP_REEXEC";

int AffinityCores() {
  for (size_t cores = 1024; cores <= size_t{1} << 20; cores *= 2) {
    std::vector<cpu_set_t> set(cores / 1024);
    const size_t set_bytes = set.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, set_bytes, set.data()) == 0) {
      return std::max(1, CPU_COUNT_S(set_bytes, set.data()));
    }
    if (errno != EINVAL) break;  // EINVAL: the kernel's mask is longer than ours
  }
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

int CoresOf(double quota_us, double period_us) {
  return static_cast<int>(
      std::max<int64_t>(1, (static_cast<int64_t>(quota_us) + static_cast<int64_t>(period_us) - 1) /
                               static_cast<int64_t>(period_us)));
}

// Cores that the quota of one cgroup folder allows, or `cores` when it sets none.
int LimitByFolder(const std::string& folder, bool v2, int cores) {
  double quota_us = 0;
  double period_us = 0;
  if (v2) {
    std::ifstream max(folder + "/cpu.max");  // "max 100000" or "150000 100000"
    if (!(max >> quota_us >> period_us)) return cores;
  } else {
    std::ifstream quota(folder + "/cpu.cfs_quota_us");  // -1: none
    std::ifstream period(folder + "/cpu.cfs_period_us");
    if (!(quota >> quota_us) || !(period >> period_us)) return cores;
  }
  if (quota_us <= 0 || period_us < 1) return cores;
  return std::min(cores, CoresOf(quota_us, period_us));
}

// The tightest quota from this process's group up to the root. In a container the path may not be
// visible; then only the root, which is the container's own group, answers.
int QuotaCores(int cores) {
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {  // "0::/path" (v2) or "4:cpu,cpuacct:/path" (v1)
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool v2 = controllers == ",,";
    if (!v2 && controllers.find(",cpu,") == std::string::npos) continue;
    const std::string root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
    std::string path = line.substr(second + 1);
    while (!path.empty()) {
      cores = LimitByFolder(root + path, v2, cores);
      path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
    }
    cores = LimitByFolder(root, v2, cores);
  }
  return cores;
}

#ifdef _OPENMP
int DefaultTeam() {
  // libgomp's own default counts affinity but no quota; a user's OMP_NUM_THREADS stands.
  return std::getenv("OMP_NUM_THREADS") != nullptr ? omp_get_max_threads() : AvailableCores();
}
#else
int DefaultTeam() {
  return 1;
}
#endif

thread_local int team_size = 0;  // 0: not chosen yet on this thread

}  // namespace

int AvailableCores() {
  return QuotaCores(AffinityCores());
}

void SetComputeThreads(int count) {
#ifdef _OPENMP
  team_size = count > 0 ? count : AvailableCores();
  omp_set_num_threads(team_size);  // a setting of the calling thread; oneDNN reads it too
#else
  static_cast<void>(count);
  team_size = 1;
#endif
}

int compute_threads() {
  if (team_size == 0) SetComputeThreads(DefaultTeam());
  return team_size;
}

void ParallelFor(int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  if (count <= 0) return;
#ifdef _OPENMP
  const int64_t by_grain = count / std::max<int64_t>(grain, 1);
  if (by_grain > 1 && omp_in_parallel() == 0) {
    const int team = compute_threads();
    const int64_t parts = std::min<int64_t>(team, by_grain);
    if (parts > 1) {
      const int64_t length = count / parts;
      const int64_t longer = count % parts;  // the first `longer` ranges take one more
      // Always the whole team, even when only a part of it has work: libgomp ends the surplus
      // threads of a smaller team and starts them anew for the next larger one (a pair of loops of
      // 4 and 2 threads on 2 busy cores: 660 us, of 4 and 4: 61 us).
#pragma omp parallel num_threads(team)
      {
        // The system may give fewer threads than asked, hence the stride.
        for (int64_t part = omp_get_thread_num(); part < parts; part += omp_get_num_threads()) {
          const int64_t begin = part * length + std::min(part, longer);
          body(begin, begin + length + (part < longer ? 1 : 0));
        }
      }
      return;
    }
  }
#else
  static_cast<void>(grain);
#endif
  body(0, count);
}

void EnsureOpenMpWaitPolicy(char** argv) {
#ifdef _OPENMP
  if (argv == nullptr || argv[0] == nullptr) return;
  if (std::getenv(kMarker) != nullptr) {
    // execv of /proc/self/exe left the thread named "exe"; give the name back to ps and top.
    const std::string_view program = argv[0];
    prctl(PR_SET_NAME, std::string(program.substr(program.find_last_of('/') + 1)).c_str());
    return;
  }
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  if (setenv(kMarker, "1", 1) != 0 || setenv("GOMP_SPINCOUNT", kSpinCount, 1) != 0) return;
  execv("/proc/self/exe", argv);
  // No /proc or no permission: go on with libgomp's own policy.
#else
  static_cast<void>(argv);
#endif
}

}  // namespace whimbrel
