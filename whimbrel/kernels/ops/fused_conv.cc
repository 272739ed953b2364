// FusedConv: y = activation(conv(x, w) + b + z), made by passes from Conv with what follows it.
//
// in   X, W, B  as Conv's
//      Z        residual of the output's shape, optional
//      slope    [out channels] or [1], for activation PRelu only
// attr Conv's, and activation, activation_alpha, activation_beta (ops/activation.h)
// out  Y        as Conv's
// Source: our own; the sum is in double and rounded once.

#include "whimbrel/kernels/ops/activation.h"
#include "whimbrel/kernels/ops/conv_common.h"

namespace whimbrel {
namespace {

constexpr size_t kResidual = 3, kSlope = 4;

void Infer(InferContext& c) {
  InferConv(c);
  CheckActivation(c, kSlope);
  if (!c.out(0).dims) return;
  const Dims out = *c.out(0).dims;
  if (c.has(kResidual) && c.in(kResidual).dims) {
    const Dims& z = *c.in(kResidual).dims;
    bool fits = z.size() == out.size();
    for (size_t i = 0; fits && i < z.size(); ++i) {
      fits = !z[i].known() || !out[i].known() || z[i].Is(out[i].value());
    }
    if (!fits) c.Fail("the residual is " + ToString(z) + ", the output " + ToString(out));
  }
  if (c.has(kSlope) && c.in(kSlope).dims) {
    const Dims& slope = *c.in(kSlope).dims;
    const bool fits = slope.size() == 1 && (!slope[0].known() || slope[0].Is(1) ||
                                            !out[1].known() || slope[0].Is(out[1].value()));
    if (!fits) c.Fail("the slope must be [" + ToString(out[1]) + "], is " + ToString(slope));
  }
}

std::vector<AttributeSpec> FusedAttributes() {
  auto attributes = ConvAttributes();
  for (AttributeSpec& a : ActivationAttributes()) attributes.push_back(a);
  return attributes;
}

WHIMBREL_REGISTER(OpSchema{
    .name = "FusedConv",
    .domain = "whimbrel",
    .inputs = {{.name = "X", .types = kFloatTypes, .group = 1},
               {.name = "W", .types = kFloatTypes, .group = 1},
               {.name = "B", .types = kFloatTypes, .optional = true, .group = 1},
               {.name = "Z", .types = kFloatTypes, .optional = true, .group = 1},
               {.name = "slope", .types = kFloatTypes, .optional = true, .group = 1}},
    .outputs = {{.name = "Y", .types = kFloatTypes, .group = 1}},
    .attributes = FusedAttributes(),
    .infer = Infer,
    .cost = ConvCost,
    .samples =
        {"f32:1x8x14x14 f32:16x8x3x3! f32:16! pads=1,1,1,1 activation=Relu",
         "f32:1x8x14x13 f32:8x8x1x1! f32:8! f32:1x8x14x13 activation=Relu",
         "f32:1x8x9x9 f32:8x8x3x3! f32:8! f32:1x8x9x9 pads=1,1,1,1",
         "f32:1x8x9x9 f32:8x8x3x3! f32:8! activation=Clip activation_alpha=0 activation_beta=6",
         "f32:1x8x9x9 f32:8x8x3x3! f32:8! activation=HardSigmoid activation_alpha=0.1667 "
         "activation_beta=0.5",
         "f32:1x8x9x9 f32:8x8x3x3! f32:8! activation=HardSwish",
         "f32:1x8x9x9 f32:8x8x3x3! f32:8! activation=Sigmoid",
         "f32:1x8x9x9 f32:8x8x3x3! f32:8! activation=Tanh",
         "f32:1x8x9x9 f32:8x8x3x3! - f32:1x8x7x7 activation=LeakyRelu activation_alpha=0.1",
         "f32:1x8x9x9 f32:8x8x3x3! f32:8! - f32:8! activation=PRelu",
         "f32:1x8x9x9 f32:8x8x3x3! f32:8! - f32:1! activation=PRelu",
         "f32:1x8x9x9 f32:8x8x3x3! f32:8! activation=Swish",
         "f32:1x16x20x20 f32:16x1x3x3! f32:16! group=16 pads=1,1,1,1 activation=HardSwish",
         "f32:1x16x21x19 f32:16x1x5x5! f32:16! group=16 strides=2,2 pads=2,2,2,2 activation=Relu",
         "f32:1x20x9x9 f32:20x1x3x3! f32:20! f32:1x20x9x9 group=20 pads=1,1,1,1 activation=HardSwish",
         "f32:2x4x15 f32:6x4x3! f32:6! pads=1,1 activation=Relu",
         "f32:1x1x1x1 f32:1x1x1x1! activation=Sigmoid",
         "f32:0x3x8x8 f32:4x3x3x3! f32:4! activation=Relu",
         "f32:1x32x28x28 f32:64x32x3x3! f32:64! f32:1x64x28x28 pads=1,1,1,1 activation=Relu",
         "f16:1x4x9x9 f16:4x4x3x3! f16:4! activation=Relu",
         "bf16:1x4x9x9 bf16:4x4x3x3! bf16:4! activation=Swish",
         "f64:1x4x9x9 f64:4x4x3x3! f64:4! activation=Tanh",
         "f32:1x4x5x5 f32:4x4x3x3! f32:4! activation=none"},
    .matrix_op = true,
    .doc = "convolution with bias, residual and activation in one pass",
});
WHIMBREL_REGISTER(Kernel{.op = "FusedConv",
                         .domain = "whimbrel",
                         .name = "reference",
                         .in_place = uint64_t{1} << kResidual,
                         .workspace = ConvReferenceWorkspace,
                         .run = RunConvReference});

}  // namespace
}  // namespace whimbrel
