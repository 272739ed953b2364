// comparison: the schema that Greater, GreaterOrEqual, Less and LessOrEqual share.

#pragma once

#include <climits>
#include <string_view>
#include <utility>
#include <vector>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {

// since is 7, 9 or 13 for Greater and Less, 12 or 16 for the other two, which came later.
inline OpSchema ComparisonSchema(std::string_view name, int since,
                                 std::vector<std::string_view> samples) {
  WHIMBREL_CHECK(since == 7 || since == 9 || since == 12 || since == 13 || since == 16);
  return MakeSchema({.name = name,
                     .since = since,
                     .until = since == 7    ? 9
                              : since == 9  ? 13
                              : since == 12 ? 16
                                            : INT_MAX,
                     .types = since == 7    ? kFloatTypesTo12
                              : since <= 12 ? kNumericTypesTo12
                                            : kNumericTypes,
                     .out_types = kBoolType,
                     .inputs = {"A", "B"},
                     .output = "C",
                     .infer = InferBroadcastBool,
                     .samples = std::move(samples)});
}

}  // namespace whimbrel
