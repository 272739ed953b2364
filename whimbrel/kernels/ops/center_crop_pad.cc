// CenterCropPad: the middle of x along the axes where the shape asked for is smaller; x in the
// middle of zeros where it is larger.
//
// in   input_data  any type
//      shape       i32 | i64 [n], the dims asked for, one an axis
// attr axes        ints, default all
// out  output_data
// Of an odd difference the smaller half lies before. Source: ONNX operator CenterCropPad (18).

#include <cstring>

#include <fmt/format.h>

#include "whimbrel/kernels/ops/axes.h"
#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/move.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  const auto& in = c.in(0).dims;
  const auto& length = c.in(1).dims;
  if (length && length->size() != 1) c.Fail("shape must have rank 1, is " + ToString(*length));
  if (!in) return c.SetOut(0, c.in(0).dtype, std::nullopt);
  const auto rank = static_cast<int>(in->size());
  std::vector<int64_t> axes;
  if (c.attrs().Has("axes")) {
    const auto written = c.attrs().Ints("axes");
    axes.assign(written.begin(), written.end());
  } else {
    for (int d = 0; d < rank; ++d) axes.push_back(d);
  }
  InferAxisMask(c, axes, rank, false);
  if (length && length->front().known() &&
      length->front().value() != static_cast<int64_t>(axes.size())) {
    c.Fail(fmt::format("shape has {} values for {} axes", length->front().value(), axes.size()));
  }
  Dims out = *in;
  const auto asked = SmallElements(c, 1);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(NormalizeAxis(axes[i], rank, "CenterCropPad"));
    out[axis] = asked && i < asked->size() ? (*asked)[i] : Dim();
    if (out[axis].known() && out[axis].value() < 0) {
      c.Fail("shape " + ToString(*asked) + " has a negative dim");
    }
  }
  c.SetOut(0, c.in(0).dtype, std::move(out));
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& in = call.x(0).shape();
  const auto axes = call.attrs().Ints("axes");
  const bool all = !call.attrs().Has("axes");
  Shape out = in;
  for (int64_t i = 0; i < call.x(1).elements(); ++i) {
    const int64_t dim = ElementAsInt64(call.x(1), i);
    if (dim < 0)
      throw Error(Code::kInvalidData, fmt::format("CenterCropPad: shape asks for {}", dim));
    out.set(all ? static_cast<int>(i)
                : NormalizeAxis(axes[static_cast<size_t>(i)], in.rank(), "CenterCropPad"),
            dim);
  }
  call.ResizeOutput(0, call.x(0).dtype(), out);
  if (out.elements() == 0) return;
  // All zero bits are 0 in every type.
  std::memset(call.y(0).raw(), 0, call.y(0).bytes());
  const auto in_strides = in.Strides();
  const auto out_strides = out.Strides();
  StridedBlock block;
  for (int d = 0; d < in.rank(); ++d) {
    const auto k = static_cast<size_t>(d);
    block.Append(std::min(in[d], out[d]), in_strides[k], out_strides[k]);
    if (in[d] > out[d]) block.in_offset += (in[d] - out[d]) / 2 * in_strides[k];
    if (out[d] > in[d]) block.out_offset += (out[d] - in[d]) / 2 * out_strides[k];
  }
  CopyBlock(block, ItemSize(call.x(0).dtype()), call.x(0).raw(), call.y(0).raw());
}

WHIMBREL_REGISTER(OpSchema{
    .name = "CenterCropPad",
    .since = 18,
    .inputs = {{.name = "input_data", .group = 1}, {.name = "shape", .types = kIndexTypes}},
    .outputs = {{.name = "output_data", .group = 1}},
    .attributes = {{"axes", AttributeType::kInts, false, "default all; in [-rank, rank)"}},
    .infer = Infer,
    .cost = MoveCost,
    .samples = {"f32:20x10x3 i64:3={10,7,3}", "f32:10x7x3 i64:3={20,10,3}",
                "f32:20x8x3 i64:3={10,10,3}", "f32:20x8x3 i64:2={10,9} axes=0,1",
                "f32:3x20x8 i64:2={10,9} axes=-2,-1", "f32:1 i32:1={1}", "f32:5 i64:1={2}",
                "f32:2 i64:1={5}", "f32:0x8 i64:2={3,3}", "f32:3x8 i64:2={0,9}",
                "f32:3x3 i64:2@0..5", "f32: i64:0", "f16:7x17 i32:2={8,16}",
                "bf16:7x17 i64:1={5} axes=0", "f64:3x5 i64:2={4,4}", "bool:3x3 i64:2={5,1}",
                "u8:9 i64:1={12}", "f32:1x3x160x160 i64:2={128,192} axes=2,3"}});
WHIMBREL_REGISTER(Kernel{.op = "CenterCropPad", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
