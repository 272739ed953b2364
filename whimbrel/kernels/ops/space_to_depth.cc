// SpaceToDepth: y[n, (i b + j) C + c, h, w] = x[n, c, h b + i, w b + j], with mode CRD at channel
// (c b + i) b + j; b = blocksize, C = channels of x.
//
// in   input   any type, [N, C, H b, W b]
// attr blocksize  int
//      mode    string, from 28: "DCR" (default) or "CRD"
// out  output  [N, C b b, H, W]
// Source: ONNX operator SpaceToDepth (1, 13, 28).

#include "whimbrel/kernels/ops/depth_space.h"
#include "whimbrel/kernels/ops/move.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  const int64_t b = InferBlockSize(c);
  if (!c.in(0).dims) return c.SetOut(0, c.in(0).dtype, Dims(4));
  const Dims& in = *c.in(0).dims;
  c.SetOut(0, c.in(0).dtype,
           Dims{in[0], in[1] * (b * b), ExactQuotient(c, in[2], b), ExactQuotient(c, in[3], b)});
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& in = call.x(0).shape();
  if (in.elements() == 0) return;
  const int64_t b = call.attrs().Int("blocksize", 1);
  const int64_t height = in[2] / b;
  const int64_t width = in[3] / b;
  const int64_t plane = height * width;
  const bool crd = call.attrs().String("mode", "DCR") == "CRD";
  StridedBlock block;
  block.Append(in[0], in[1] * in[2] * in[3], in[1] * in[2] * in[3]);
  block.Append(in[1], in[2] * in[3], (crd ? b * b : 1) * plane);
  block.Append(height, in[3] * b, width);
  block.Append(b, in[3], b * (crd ? 1 : in[1]) * plane);
  block.Append(width, b, 1);
  block.Append(b, 1, (crd ? 1 : in[1]) * plane);
  CopyBlock(block, ItemSize(call.x(0).dtype()), call.x(0).raw(), call.y(0).raw());
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return OpSchema{
      .name = "SpaceToDepth",
      .since = since,
      .until = until,
      .inputs = {{.name = "input", .types = types, .group = 1}},
      .outputs = {{.name = "output", .types = types, .group = 1}},
      .attributes = DepthSpaceAttributes(since >= 28),
      .infer = Infer,
      .cost = MoveCost,
      .samples = std::move(samples),
  };
}

WHIMBREL_REGISTER(Schema(1, 13, kAllTypesTo12, {"f32:1x2x4x6 blocksize=2 opset=7"}));
WHIMBREL_REGISTER(Schema(13, 28, kAllTypes,
                         {"f32:1x2x4x6 blocksize=2", "i32:2x1x3x6 blocksize=3"}));
WHIMBREL_REGISTER(Schema(28, INT_MAX, kAllTypes,
                         {"f32:1x2x4x6 blocksize=2", "f32:1x2x4x6 blocksize=2 mode=CRD",
                          "f32:1x1x1x1 blocksize=1", "f32:2x3x4x5 blocksize=1",
                          "f32:0x1x4x6 blocksize=2", "f32:1x1x0x6 blocksize=2",
                          "f16:2x2x9x15 blocksize=3", "bf16:2x2x9x15 blocksize=3 mode=CRD",
                          "f64:1x1x4x4 blocksize=4", "u8:1x3x6x6 blocksize=2",
                          "bool:1x1x4x4 blocksize=2 mode=CRD", "i64:1x1x2x4 blocksize=2",
                          "f32:1x3x160x160 blocksize=2"}));
WHIMBREL_REGISTER(Kernel{.op = "SpaceToDepth", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
