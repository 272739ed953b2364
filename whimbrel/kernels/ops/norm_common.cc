// Checks and cost of normalisations.

#include "whimbrel/kernels/ops/norm_common.h"

#include <fmt/format.h>

namespace whimbrel {

Dims RowStatistic(const Dims& x, int axis) {
  Dims statistic = x;
  for (size_t i = static_cast<size_t>(axis); i < x.size(); ++i) statistic[i] = 1;
  return statistic;
}

void CheckRowParameter(const InferContext& c, size_t i, const Dims& x, int axis) {
  if (!c.has(i) || !c.in(i).dims) return;
  const Dims row(x.begin() + axis, x.end());
  const Dims& p = *c.in(i).dims;
  bool fits = p.size() <= row.size();
  for (size_t d = 0; fits && d < p.size(); ++d) {
    const Dim& want = row[row.size() - p.size() + d];
    fits = !p[d].known() || !want.known() || p[d].Is(1) || p[d].Is(want.value());
  }
  if (!fits) {
    c.Fail(fmt::format("input {} {} does not broadcast to a row {}", c.schema().inputs[i].name,
                       ToString(p), ToString(row)),
           "the attribute axis says where a row begins");
  }
}

Cost NormCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops = 8 * static_cast<double>(call.x(0).elements());
  return cost;
}

}  // namespace whimbrel
