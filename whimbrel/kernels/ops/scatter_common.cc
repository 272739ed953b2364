// Reductions of the Scatter operators, and what Scatter and ScatterElements share.

#include "whimbrel/kernels/ops/element_index.h"
#include "whimbrel/kernels/ops/scatter.h"

namespace whimbrel {

ScatterReduction ReadScatterReduction(const OpSchema& schema, const Attributes& attributes) {
  const std::string_view word = attributes.String("reduction", "none");
  if (word == "none") return ScatterReduction::kNone;
  if (word == "add") return ScatterReduction::kAdd;
  if (word == "mul") return ScatterReduction::kMul;
  // max and min came with 18
  if (word == "max" && schema.since >= 18) return ScatterReduction::kMax;
  if (word == "min" && schema.since >= 18) return ScatterReduction::kMin;
  throw Error(Code::kInvalidData, fmt::format("{}: reduction is \"{}\"", schema.name, word),
              schema.since >= 18 ? "it is none, add, mul, max or min" : "it is none, add or mul");
}

AttributeSpec ScatterReductionSpec() {
  return {"reduction", AttributeType::kString, false,
          "none (default), add, mul, and from 18 max, min"};
}

Cost ScatterCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops = static_cast<double>(call.x(2).elements());
  return cost;
}

void InferScatterElements(InferContext& c) {
  ReadScatterReduction(c.schema(), c.attrs());
  CheckElementIndices(c);
  const auto& indices = c.in(1).dims;
  const auto& updates = c.in(2).dims;
  if (indices && updates) {
    bool same = indices->size() == updates->size();
    for (size_t d = 0; same && d < indices->size(); ++d) {
      const Dim& a = (*indices)[d];
      const Dim& b = (*updates)[d];
      same = !a.known() || !b.known() || a.Same(b);
    }
    if (!same) {
      c.Fail(fmt::format("updates {} must have the shape of indices {}", ToString(*updates),
                         ToString(*indices)));
    }
  }
  InferLikeFirst(c);
}

// In order of the updates and on one thread: two of one place must not race.
void RunScatterElements(const OpCall& call, std::span<std::byte> /*workspace*/,
                        Stream& /*stream*/) {
  const ElementIndex index(call);
  index.CheckRange(call);
  ScatterReference(call, [&](auto&& update) { index.Walk(call, 0, call.x(1).elements(), update); });
}

OpSchema ScatterElementsSchema(std::string_view name, int since, int until, TypeMask types,
                               std::vector<std::string_view> samples) {
  OpSchema schema{
      .name = name,
      .since = since,
      .until = until,
      .inputs = {{.name = "data", .types = types, .group = 1},
                 {.name = "indices", .types = kIndexTypes},
                 {.name = "updates", .types = types, .group = 1}},
      .outputs = {{.name = "output", .types = types, .group = 1}},
      .attributes = {{"axis", AttributeType::kInt, false, "default 0; in [-rank, rank)"}},
      .infer = InferScatterElements,
      .cost = ScatterCost,
      .samples = std::move(samples),
  };
  if (since >= 16) schema.attributes.push_back(ScatterReductionSpec());
  return schema;
}

}  // namespace whimbrel
