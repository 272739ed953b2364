// GroupNormalization: y = (x - mean) / sqrt(variance + epsilon) * scale + bias, with the moments of
// each group of channels of each batch entry.
//
// in   X            [batch, channels, spatial...]  f32 | f64 | f16 | bf16
//      scale, bias  [channels]; before opset 21 [num_groups]
// attr num_groups   int, a divisor of channels; epsilon  float, default 1e-5
//      stash_type   type of the sums (from 21); they are in double here
// out  Y            like X
// Source: ONNX operator GroupNormalization (18, 21); Wu & He 2018.

#include <fmt/format.h>

#include "whimbrel/kernels/ops/norm_common.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  const int64_t groups = c.attrs().Int("num_groups", 0);
  if (groups < 1 || groups > (int64_t{1} << 40)) c.Fail(fmt::format("num_groups is {}", groups));
  Dim channels;
  if (c.in(0).dims) {
    const Dims& x = *c.in(0).dims;
    if (x.size() < 2) c.Fail("data " + ToString(x) + " needs a batch and a channel axis");
    channels = x[1];
    if (channels.known() && channels.value() % groups != 0) {
      c.Fail(fmt::format("{} channels do not divide into {} groups", channels.value(), groups));
    }
  }
  for (size_t i : {size_t{1}, size_t{2}})
    CheckDims(c, i, {c.schema().since < 21 ? Dim(groups) : channels});
  InferLikeFirst(c);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const int64_t groups = call.attrs().Int("num_groups", 1);
  const int64_t per_group = std::max<int64_t>(call.x(0).shape()[1] / groups, 1);
  const bool of_groups = call.schema->since < 21;
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    NormalizeGroups<T>(call, groups, call.attrs().Float("epsilon", 1e-5F),
                       [&](int64_t channel) { return of_groups ? channel / per_group : channel; });
  });
}

OpSchema Schema(int since, int until, std::vector<std::string_view> samples) {
  OpSchema s{.name = "GroupNormalization",
             .since = since,
             .until = until,
             .inputs = {{.name = "X", .types = kFloatTypes, .group = 1},
                        {.name = "scale", .types = kFloatTypes, .group = 1},
                        {.name = "bias", .types = kFloatTypes, .group = 1}},
             .outputs = {{.name = "Y", .types = kFloatTypes, .group = 1}},
             .attributes = {{.name = "num_groups", .type = AttributeType::kInt, .required = true},
                            {.name = "epsilon",
                             .type = AttributeType::kFloat,
                             .note = "default 1e-5, added to the variance"}},
             .infer = Infer,
             .cost = NormCost,
             .samples = std::move(samples),
             .doc = "zero mean and unit variance for each group of channels"};
  if (since >= 21) {
    s.attributes.push_back({.name = "stash_type",
                            .type = AttributeType::kInt,
                            .note = "type of the sums, default 1 = f32"});
  }
  return s;
}

WHIMBREL_REGISTER(Schema(18, 21,
                         {"f32:2x6x5x5 f32:3! f32:3! num_groups=3",
                          "f16:1x4x9 f16:2! f16:2! num_groups=2 epsilon=1e-3"}));
WHIMBREL_REGISTER(
    Schema(21, INT_MAX,
           {"f32:1x64x40x40 f32:64! f32:64! num_groups=32", "f32:1x1x1 f32:1! f32:1! num_groups=1",
            "f32:3x6x7x5 f32:6! f32:6! num_groups=2", "f32:3x6 f32:6! f32:6! num_groups=3",
            "f32:0x4x3 f32:4! f32:4! num_groups=2", "f32:2x4x3 f32:4! f32:4! num_groups=4 nan=1",
            "f64:2x4x3x3x3 f64:4! f64:4! num_groups=1", "f16:2x4x9 f16:4! f16:4! num_groups=2",
            "bf16:2x4x9 bf16:4! bf16:4! num_groups=2"}));
WHIMBREL_REGISTER(Kernel{
    .op = "GroupNormalization", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
