// Global pools: schema, inference, cost.

#include "whimbrel/kernels/ops/global_pool.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  std::optional<Dims> out = c.in(0).dims;
  if (out) {
    if (out->size() < 2) c.Fail("data " + ToString(*out) + " needs a batch and a channel axis");
    for (size_t i = 2; i < out->size(); ++i) {
      if ((*out)[i].Is(0)) c.Fail("data " + ToString(*out) + " has planes without elements");
      (*out)[i] = 1;
    }
  }
  c.SetOut(0, c.in(0).dtype, std::move(out));
}

Cost GlobalPoolCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops = static_cast<double>(call.x(0).elements());
  return cost;
}

}  // namespace

OpSchema GlobalPoolSchema(std::string_view name, int since, std::vector<std::string_view> samples) {
  const bool with_bf16 = since >= 22;
  const TypeMask types = with_bf16 ? kFloatTypes : kFloatTypes & ~TypeBit(DType::kBFloat16);
  return {
      .name = name,
      .since = since,
      .until = with_bf16 ? INT_MAX : 22,
      .inputs = {{.name = "X", .types = types, .group = 1}},
      .outputs = {{.name = "Y", .types = types, .group = 1}},
      .infer = Infer,
      .cost = GlobalPoolCost,
      .samples = std::move(samples),
      .doc = "one value for each plane",
  };
}

GlobalPoolSize GlobalPoolSizeOf(const OpCall& call) {
  const Shape& x = call.x(0).shape();
  return {x.Product(0, 2), x.Product(2, x.rank())};
}

}  // namespace whimbrel
