// Dims that inference compares.

#include "whimbrel/kernels/ops/check_dims.h"

#include <fmt/format.h>

#include "whimbrel/kernels/kernels.h"

namespace whimbrel {

bool MayEqual(const Dims& a, const Dims& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (Differ(a[i], b[i])) return false;
  }
  return true;
}

void CheckDims(const InferContext& c, size_t input, const Dims& want) {
  if (!c.has(input) || !c.in(input).dims || MayEqual(*c.in(input).dims, want)) return;
  c.Fail(fmt::format("{} must be {}, is {}", c.schema().inputs[input].name, ToString(want),
                     ToString(*c.in(input).dims)));
}

std::optional<int64_t> InferPositive(const InferContext& c, size_t input, int64_t most) {
  const auto values = c.Integers(input);
  if (!values) return std::nullopt;
  if (values->size() != 1 || values->front() < 1 || values->front() > most) {
    c.Fail(fmt::format("{} must be one number from 1 to {}", c.schema().inputs[input].name, most));
  }
  return values->front();
}

}  // namespace whimbrel
