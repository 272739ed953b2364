// window_function: what HannWindow, HammingWindow and BlackmanWindow share: a sum of cosines.

#pragma once

#include <array>
#include <string_view>

#include "whimbrel/kernels/kernels.h"

namespace whimbrel {

OpSchema WindowFunctionSchema(std::string_view name);

// y[n] = a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N), n < size, N = size, or size - 1 with
// periodic = 0, whose window of one element is 1.
void RunWindowFunction(const OpCall& call, const std::array<double, 3>& a);

}  // namespace whimbrel
