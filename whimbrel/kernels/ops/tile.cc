// Tile: y = x repeated on each axis.
//
// in   input    any type
//      repeats  i64 [rank], how often on each axis
// out  output   dims multiplied by repeats
// Source: ONNX operator Tile (6, 13).

#include <fmt/format.h>

#include "whimbrel/kernels/ops/axes.h"
#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/move.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  const auto& in = c.in(0).dims;
  const IntegerList known = InferIntegers(c, "repeats", 1);
  if (!in) return c.SetOut(0, c.in(0).dtype, std::nullopt);
  if (known.count && *known.count != static_cast<int64_t>(in->size())) {
    c.Fail(fmt::format("repeats has {} values, input is {}", *known.count, ToString(*in)));
  }
  const auto repeats = SmallElements(c, 1);
  Dims out(in->size());
  for (size_t d = 0; repeats && d < in->size() && d < repeats->size(); ++d) {
    const Dim& times = (*repeats)[d];
    if (times.known() && times.value() < 0) {
      c.Fail(fmt::format("repeats {} is negative", times.value()));
    }
    out[d] = (*in)[d] * times;
  }
  c.SetOut(0, c.in(0).dtype, std::move(out));
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& in = call.x(0).shape();
  const RunIntegers repeats = ReadIntegers(call, "repeats", 1);
  if (repeats.count != in.rank()) {
    throw Error(Code::kInvalidData,
                fmt::format("Tile: {} repeats for {}", repeats.count, ToString(in)));
  }
  std::array<int64_t, kMaxRank> dims{};
  for (int d = 0; d < in.rank(); ++d) {
    if (repeats[d] < 0 ||
        __builtin_mul_overflow(in[d], repeats[d], &dims[static_cast<size_t>(d)])) {
      throw Error(Code::kInvalidData,
                  fmt::format("Tile: {} times dim {} of {}", repeats[d], d, ToString(in)));
    }
  }
  const Shape out(std::span<const int64_t>(dims.data(), static_cast<size_t>(in.rank())));
  call.ResizeOutput(0, call.x(0).dtype(), out);
  if (out.elements() == 0) return;
  const size_t item = ItemSize(call.x(0).dtype());
  const auto in_strides = in.Strides();
  const auto out_strides = out.Strides();
  // One copy of x per tile.
  int64_t tiles = 1;
  StridedBlock block;
  for (int d = 0; d < in.rank(); ++d) {
    const auto k = static_cast<size_t>(d);
    block.Append(in[d], in_strides[k], out_strides[k]);
    tiles *= repeats[d];
  }
  for (int64_t tile = 0; tile < tiles; ++tile) {
    int64_t rest = tile;
    block.out_offset = 0;
    for (int d = in.rank() - 1; d >= 0; --d) {
      block.out_offset += rest % repeats[d] * in[d] * out_strides[static_cast<size_t>(d)];
      rest /= repeats[d];
    }
    CopyBlock(block, item, call.x(0).raw(), call.y(0).raw());
  }
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return OpSchema{
      .name = "Tile",
      .since = since,
      .until = until,
      .inputs = {{.name = "input", .types = types, .group = 1},
                 {.name = "repeats", .types = TypeBit(DType::kInt64)}},
      .outputs = {{.name = "output", .types = types, .group = 1}},
      .infer = Infer,
      .cost = MoveCost,
      .samples = std::move(samples),
  };
}

WHIMBREL_REGISTER(Schema(6, 13, kAllTypesTo12, {"f32:2x3 i64:2={2,2}", "i64:3 i64:1={4}"}));
WHIMBREL_REGISTER(Schema(13, INT_MAX, kAllTypes,
                         {"f32:2x3 i64:2={2,3}", "f32:1x1 i64:2={5,7}", "f32: i64:0",
                          "f32:2x3 i64:2={0,2}", "f32:0x3 i64:2={4,2}", "f32:3x5 i64:2@1..3",
                          "f16:7x17 i64:2={1,2}", "bf16:3 i64:1={3}", "bool:2x2 i64:2={2,1}",
                          "u8:9 i64:1={1}", "f64:2x1x2 i64:3={1,3,2}",
                          "f32:1x64x1 i64:3={8,1,400}"}));
WHIMBREL_REGISTER(Kernel{.op = "Tile", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
