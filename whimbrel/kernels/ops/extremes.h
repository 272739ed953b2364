// extremes: the schema that Max and Min share.

#pragma once

#include <climits>
#include <string_view>
#include <utility>
#include <vector>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {

// since is 6, 8, 12 or 13; `output` is the name of the result.
inline OpSchema ExtremeSchema(std::string_view name, std::string_view output, int since,
                              void (*infer)(InferContext&), std::vector<std::string_view> samples) {
  WHIMBREL_CHECK(since == 6 || since == 8 || since == 12 || since == 13);
  return MakeSchema({.name = name,
                     .since = since,
                     .until = since == 6    ? 8
                              : since == 8  ? 12
                              : since == 12 ? 13
                                            : INT_MAX,
                     .types = since < 12    ? kFloatTypesTo12
                              : since == 12 ? kNumericTypesTo12
                                            : kNumericTypes,
                     .inputs = {"data_0"},
                     .output = output,
                     .variadic = true,
                     .infer = infer,
                     .cost = VariadicCost,
                     .samples = std::move(samples)});
}

}  // namespace whimbrel
