// Softmax rows, schema and inference.

#include "whimbrel/kernels/ops/softmax_common.h"

namespace whimbrel {
namespace {

int64_t DefaultAxis(int opset) {
  return opset < 13 ? 1 : -1;
}

void Infer(InferContext& c) {
  if (c.in(0).dims) {
    const int64_t axis = c.attrs().Int("axis", DefaultAxis(c.opset()));
    NormalizeAxis(axis, c.in(0).rank(), c.schema().name);
    if (c.opset() < 11 && axis < 0)
      c.Fail("axis " + std::to_string(axis) + " is negative, allowed from opset 11 on");
  }
  InferLikeFirst(c);
}

// Largest, difference, exponential, sum, quotient.
Cost SoftmaxCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops *= 5;
  return cost;
}

}  // namespace

SoftmaxRows SoftmaxRowsOf(const OpCall& call) {
  const Shape& x = call.x(0).shape();
  const int axis =
      NormalizeAxis(call.attrs().Int("axis", DefaultAxis(call.opset)), x.rank(), call.schema->name);
  if (call.opset < 13) return {x.Product(0, axis), x.Product(axis, x.rank()), 1};
  const int64_t inner = x.Product(axis + 1, x.rank());
  return {x.Product(0, axis) * inner, x[axis], inner};
}

OpSchema SoftmaxSchema(std::string_view name, int since, std::vector<std::string_view> samples) {
  const TypeMask types = since >= 13 ? kFloatTypes : kFloatTypes & ~TypeBit(DType::kBFloat16);
  return {
      .name = name,
      .since = since,
      .until = since == 1 ? 11 : (since == 11 ? 13 : INT_MAX),
      .inputs = {{.name = "input", .types = types, .group = 1}},
      .outputs = {{.name = "output", .types = types, .group = 1}},
      .attributes = {{.name = "axis",
                      .type = AttributeType::kInt,
                      .note = since >= 13 ? "default -1"
                                          : "default 1; all dims from here on are one row"}},
      .infer = Infer,
      .cost = SoftmaxCost,
      .samples = std::move(samples),
      .doc = since >= 13 ? "along one axis" : "over all dims from axis on, flattened",
  };
}

}  // namespace whimbrel
