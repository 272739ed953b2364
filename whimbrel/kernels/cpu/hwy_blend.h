// WeightedSum: runs of f32 added up with weights, for the best target of this machine.

#pragma once

#include <cstddef>

namespace whimbrel {

// out[i] = sum over k < taps of weights[k] * runs[k][i]; taps >= 1; out overlaps no run.
using WeightedSumFunction = void (*)(const float* const* runs, const float* weights, size_t taps,
                                     size_t count, float* out);
WeightedSumFunction FindWeightedSum();

}  // namespace whimbrel
