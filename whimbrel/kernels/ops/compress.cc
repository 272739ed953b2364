// Compress: y = the slices of x along one axis where the condition holds, or the elements of the
// flattened x.
//
// in   input      any type, rank >= 1
//      condition  bool [n], n at most the length; what lies beyond it is dropped
// attr axis       int, optional; absent: input is flattened
// out  output     the dim of the axis counts the true conditions; rank 1 without axis
// Source: ONNX operator Compress (9, 11, 28).

#include <cstring>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  const auto& in = c.in(0).dims;
  const auto& condition = c.in(1).dims;
  if (in && in->empty()) c.Fail("input is a scalar", "input needs a rank of 1 or more");
  if (condition && condition->size() != 1) {
    c.Fail("condition must have rank 1, is " + ToString(*condition));
  }
  const bool flat = !c.attrs().Has("axis");
  if (flat) return c.SetOut(0, c.in(0).dtype, Dims{Dim()});
  if (!in) return c.SetOut(0, c.in(0).dtype, std::nullopt);
  Dims out = *in;
  const int axis =
      NormalizeAxis(c.attrs().Int("axis", 0), static_cast<int>(in->size()), "Compress");
  out[static_cast<size_t>(axis)] = Dim();
  c.SetOut(0, c.in(0).dtype, std::move(out));
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& in = call.x(0).shape();
  const bool flat = !call.attrs().Has("axis");
  const int axis = flat ? 0 : NormalizeAxis(call.attrs().Int("axis", 0), in.rank(), "Compress");
  const int64_t length = flat ? in.elements() : in[axis];
  const bool* condition = call.x(1).data<bool>();
  const int64_t asked = std::min(length, call.x(1).elements());
  const int64_t count = std::count(condition, condition + asked, true);
  Shape out = flat ? Shape{count} : in;
  if (!flat) out.set(axis, count);
  call.ResizeOutput(0, call.x(0).dtype(), out);
  if (out.elements() == 0) return;
  const int64_t outer = flat ? 1 : in.Product(0, axis);
  const auto row = static_cast<int64_t>(ItemSize(call.x(0).dtype())) *
                   (flat ? 1 : in.Product(axis + 1, in.rank()));
  const auto* from = call.x(0).data<std::byte>();
  auto* to = call.y(0).data<std::byte>();
  for (int64_t block = 0; block < outer; ++block) {
    for (int64_t k = 0; k < asked; ++k) {
      if (!condition[k]) continue;
      std::memcpy(to, from + (block * length + k) * row, static_cast<size_t>(row));
      to += row;
    }
  }
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return OpSchema{
      .name = "Compress",
      .since = since,
      .until = until,
      .inputs = {{.name = "input", .types = types, .group = 1},
                 {.name = "condition", .types = kBoolType}},
      .outputs = {{.name = "output", .types = types, .group = 1}},
      .attributes = {{"axis", AttributeType::kInt, false, "absent: input is flattened"}},
      .infer = Infer,
      .cost = MoveCost,
      .samples = std::move(samples),
  };
}

WHIMBREL_REGISTER(Schema(9, 28, kAllTypesTo12,
                         {"f32:3x4 bool:3={1,0,1} axis=0", "f32:3x4 bool:5={1,0,1,0,1}",
                          "i64:5 bool:5 opset=11"}));
WHIMBREL_REGISTER(Schema(28, INT_MAX, kAllTypes,
                         {"f32:3x4 bool:2={0,1} axis=1", "f32:3x4 bool:12", "f32:1 bool:1={1}",
                          "f32:1 bool:1={0}", "f32:0x8 bool:8 axis=1", "f32:3x4 bool:0",
                          "f16:7x17 bool:17 axis=-1", "bf16:7x17 bool:7 axis=0",
                          "f64:2x3x4 bool:3 axis=1", "u8:9 bool:20", "bool:9 bool:9",
                          "f32:8 bool:8 nan=1", "f32:64x40x40 bool:64 axis=0"}));
WHIMBREL_REGISTER(Kernel{.op = "Compress", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
