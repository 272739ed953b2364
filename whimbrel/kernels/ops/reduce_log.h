// reduce_log: what ReduceLogSum and ReduceLogSumExp share: they lost the integers at opset 28.

#pragma once

#include <algorithm>

#include "whimbrel/kernels/ops/float_to_int.h"
#include "whimbrel/kernels/ops/reduce.h"

namespace whimbrel {

// since is 1, 13, 18 or 28.
inline OpSchema ReduceLogSchema(std::string_view name, int since) {
  OpSchema schema = ReduceFoldSchema(name, std::min(since, 18));
  if (since == 18) schema.until = 28;
  if (since == 28) {
    schema.since = 28;
    schema.inputs[0].types = kFloatTypes;
    schema.outputs[0].types = kFloatTypes;
    std::erase_if(schema.samples, [](std::string_view s) { return s[0] == 'i' || s[0] == 'u'; });
    schema.samples.insert(schema.samples.end(),
                          {"f32:2x3={1000,1000,-1000,-inf,-inf,-inf} i64:1={1}",
                           "f32:2x2={inf,1,inf,inf} i64:1={1}", "f16:3={11,11,11}"});
  }
  return schema;
}

template <typename W>
W FromLogarithm(double x) {
  if constexpr (std::is_integral_v<W>) {
    return FloatToInt<W>(x);
  } else {
    return x;
  }
}

}  // namespace whimbrel
