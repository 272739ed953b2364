// Isa: which instruction set the kernels may use on this machine, with WHIMBREL_ISA obeyed.

#pragma once

#include <cstdint>
#include <string_view>

namespace whimbrel {

enum class Isa : uint8_t { kPortable, kAvx2, kAvx512 };

// The best set that the processor has, capped by WHIMBREL_ISA=avx512|avx2|portable (read once; an
// unknown word is an Error). `portable`: no oneDNN and no intrinsics at all.
Isa ActiveIsa();
std::string_view IsaName(Isa isa);

// "AMD EPYC ...", from the operating system; empty when unknown.
std::string_view CpuModelName();

}  // namespace whimbrel
