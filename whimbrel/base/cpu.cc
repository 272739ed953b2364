// Asks the processor for its instruction sets; the only file of this floor with platform
// conditions.

#include "whimbrel/base/cpu.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "whimbrel/base/error.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace whimbrel {
namespace {

#if defined(__x86_64__) || defined(__i386__)
// __builtin_cpu_supports has no "f16c" in clang 14; the system's share (saved YMM state) is part
// of its answer for "avx2".
bool HasF16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & (1u << 29)) != 0;
}

Isa BestIsa() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !HasF16c()) {
    return Isa::kPortable;
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    return Isa::kAvx512;
  }
  return Isa::kAvx2;
}
#else
Isa BestIsa() {
  return Isa::kPortable;
}
#endif

Isa ReadActiveIsa() {
  const Isa best = BestIsa();
  const char* word = std::getenv("WHIMBREL_ISA");
  if (word == nullptr || *word == '\0') return best;
  for (Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
    if (IsaName(isa) == word) return std::min(best, isa);
  }
  throw Error(Code::kInvalidArgument,
              "WHIMBREL_ISA is \"" + std::string(word) + "\", which is no instruction set",
              "set it to avx512, avx2 or portable, or unset it");
}

std::string ReadCpuModelName() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line)) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t value = line.find_first_not_of(": \t", line.find(':'));
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "";
}

}  // namespace

Isa ActiveIsa() {
  static const Isa isa = ReadActiveIsa();
  return isa;
}

std::string_view IsaName(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return "portable";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "unknown";
}

std::string_view CpuModelName() {
  static const std::string name = ReadCpuModelName();
  return name;
}

}  // namespace whimbrel
