// skip_norm: SkipLayerNormalization and SkipSimplifiedLayerNormalization, which add a residual and
// normalise the sum.

#pragma once

#include <string_view>
#include <vector>

#include "whimbrel/kernels/kernels.h"

namespace whimbrel {

// `centred`: the mean is taken off and there is a beta input behind gamma.
OpSchema SkipNormSchema(std::string_view name, bool centred, std::vector<std::string_view> samples);
void RunSkipNorm(const OpCall& call, bool centred);

}  // namespace whimbrel
