// DepthToSpace: y[n, c, h b + i, w b + j] = x[n, (i b + j) C + c, h, w], with mode CRD
// x[n, (c b + i) b + j, h, w]; b = blocksize, C = channels of y.
//
// in   input   any type, [N, C b b, H, W]
// attr blocksize  int
//      mode    string, from 11: "DCR" (default) or "CRD"
// out  output  [N, C, H b, W b]
// Source: ONNX operator DepthToSpace (1, 11, 13, 28).

#include "whimbrel/kernels/ops/depth_space.h"
#include "whimbrel/kernels/ops/move.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  const int64_t b = InferBlockSize(c);
  if (!c.in(0).dims) return c.SetOut(0, c.in(0).dtype, Dims(4));
  const Dims& in = *c.in(0).dims;
  c.SetOut(0, c.in(0).dtype, Dims{in[0], ExactQuotient(c, in[1], b * b), in[2] * b, in[3] * b});
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& in = call.x(0).shape();
  if (in.elements() == 0) return;
  const int64_t b = call.attrs().Int("blocksize", 1);
  const int64_t plane = in[2] * in[3];
  const int64_t channels = in[1] / (b * b);
  const bool crd = call.attrs().String("mode", "DCR") == "CRD";
  StridedBlock block;
  block.Append(in[0], in[1] * plane, in[1] * plane);
  block.Append(channels, (crd ? b * b : 1) * plane, plane * b * b);
  block.Append(in[2], in[3], in[3] * b * b);
  block.Append(b, b * (crd ? 1 : channels) * plane, in[3] * b);
  block.Append(in[3], 1, b);
  block.Append(b, (crd ? 1 : channels) * plane, 1);
  CopyBlock(block, ItemSize(call.x(0).dtype()), call.x(0).raw(), call.y(0).raw());
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return OpSchema{
      .name = "DepthToSpace",
      .since = since,
      .until = until,
      .inputs = {{.name = "input", .types = types, .group = 1}},
      .outputs = {{.name = "output", .types = types, .group = 1}},
      .attributes = DepthSpaceAttributes(since >= 11),
      .infer = Infer,
      .cost = MoveCost,
      .samples = std::move(samples),
  };
}

WHIMBREL_REGISTER(Schema(1, 11, kAllTypesTo12, {"f32:1x8x2x3 blocksize=2 opset=7"}));
WHIMBREL_REGISTER(Schema(11, 13, kAllTypesTo12,
                         {"f32:1x8x2x3 blocksize=2 mode=CRD", "i32:2x9x1x2 blocksize=3"}));
WHIMBREL_REGISTER(Schema(13, INT_MAX, kAllTypes,
                         {"f32:1x8x2x3 blocksize=2", "f32:1x8x2x3 blocksize=2 mode=CRD",
                          "f32:1x1x1x1 blocksize=1", "f32:2x3x4x5 blocksize=1",
                          "f32:0x4x2x3 blocksize=2", "f32:1x4x0x3 blocksize=2",
                          "f16:2x18x3x5 blocksize=3", "bf16:2x18x3x5 blocksize=3 mode=CRD",
                          "f64:1x16x1x1 blocksize=4", "u8:1x4x3x3 blocksize=2",
                          "bool:1x4x2x2 blocksize=2 mode=CRD", "i64:1x4x1x2 blocksize=2",
                          "f32:1x64x40x40 blocksize=2"}));
WHIMBREL_REGISTER(Kernel{.op = "DepthToSpace", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
