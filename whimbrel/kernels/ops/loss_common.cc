// Shapes and checks of the loss operators.

#include "whimbrel/kernels/ops/loss_common.h"

#include <fmt/format.h>

#include "whimbrel/kernels/ops/check_dims.h"

namespace whimbrel {

LossSizes LossSizesOf(const OpCall& call) {
  const Shape& x = call.x(0).shape();
  return {call.x(1).elements(), x[1], x.Product(2, x.rank())};
}

int64_t TargetOf(const OpCall& call, int64_t sample) {
  const Tensor& t = call.x(1);
  return t.dtype() == DType::kInt32 ? t.data<int32_t>()[sample] : t.data<int64_t>()[sample];
}

void CheckTargets(const OpCall& call) {
  const LossSizes s = LossSizesOf(call);
  const bool ignores = call.attrs().Has("ignore_index");
  const int64_t ignored = call.attrs().Int("ignore_index", -1);
  for (int64_t sample = 0; sample < s.samples; ++sample) {
    const int64_t target = TargetOf(call, sample);
    if ((target >= 0 && target < s.classes) || (ignores && target == ignored)) continue;
    throw Error(Code::kInvalidData, fmt::format("{}: target {} is {}, there are {} classes",
                                                call.schema->name, sample, target, s.classes));
  }
}

std::vector<Formal> LossInputs(std::string_view scores, std::string_view targets,
                               std::string_view weights, TypeMask types) {
  return {{.name = scores, .types = types, .group = 1},
          {.name = targets, .types = kIndexTypes},
          {.name = weights, .types = types, .optional = true, .group = 1}};
}

std::vector<AttributeSpec> LossAttributes() {
  return {
      {.name = "ignore_index",
       .type = AttributeType::kInt,
       .note = "targets of this value count 0; default: none"},
      {.name = "reduction", .type = AttributeType::kString, .note = "mean (default), sum or none"}};
}

void InferLoss(InferContext& c) {
  const std::string_view reduction = c.attrs().String("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    c.Fail(fmt::format("reduction \"{}\" is not known", reduction));
  std::optional<Dims> samples = c.in(1).dims;
  if (c.in(0).dims) {
    const Dims& x = *c.in(0).dims;
    if (x.size() < 2) c.Fail("scores " + ToString(x) + " need a batch and a class axis");
    Dims want{x[0]};
    want.insert(want.end(), x.begin() + 2, x.end());
    CheckDims(c, 1, want);
    CheckDims(c, 2, {x[1]});
    if (!samples) samples = want;
  }
  c.SetOut(0, c.in(0).dtype, reduction == "none" ? samples : std::optional<Dims>(Dims{}));
}

}  // namespace whimbrel
