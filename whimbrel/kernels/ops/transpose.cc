// Transpose: y[i0, i1, ...] = x with axis perm[k] of x as axis k of y.
//
// in   data  any type and rank
// attr perm  ints, a permutation of the axes; default: reversed
// out  transposed
// Source: ONNX operator Transpose (1, 13).

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/move.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  const auto& dims = c.in(0).dims;
  const auto perm = c.attrs().Ints("perm");
  if (!dims) {
    return c.SetOut(0, c.in(0).dtype,
                    perm.empty() ? std::nullopt : std::optional<Dims>(Dims(perm.size())));
  }
  const size_t rank = dims->size();
  if (!perm.empty() || c.attrs().Has("perm")) {
    std::vector<bool> seen(rank, false);
    bool good = perm.size() == rank;
    for (size_t i = 0; good && i < rank; ++i) {
      good = perm[i] >= 0 && perm[i] < static_cast<int64_t>(rank) &&
             !seen[static_cast<size_t>(perm[i])];
      if (good) seen[static_cast<size_t>(perm[i])] = true;
    }
    if (!good) {
      c.Fail(fmt::format("perm [{}] is no permutation of the {} axes of {}", fmt::join(perm, ", "),
                         rank, ToString(*dims)));
    }
  }
  Dims out(rank);
  for (size_t i = 0; i < rank; ++i) {
    out[i] = (*dims)[perm.empty() ? rank - 1 - i : static_cast<size_t>(perm[i])];
  }
  c.SetOut(0, c.in(0).dtype, std::move(out));
  if (rank <= 1) c.out(0).elements = SmallElements(c, 0);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& in = call.x(0).shape();
  const Shape& out = call.y(0).shape();
  const auto perm = call.attrs().Ints("perm");
  const auto in_strides = in.Strides();
  const auto out_strides = out.Strides();
  StridedBlock block;
  for (int i = 0; i < out.rank(); ++i) {
    const auto k = static_cast<size_t>(i);
    const auto from =
        perm.empty() ? static_cast<size_t>(in.rank() - 1 - i) : static_cast<size_t>(perm[k]);
    block.Append(out[i], in_strides[from], out_strides[k]);
  }
  CopyBlock(block, ItemSize(call.x(0).dtype()), call.x(0).raw(), call.y(0).raw());
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return OpSchema{
      .name = "Transpose",
      .since = since,
      .until = until,
      .inputs = {{.name = "data", .types = types, .group = 1}},
      .outputs = {{.name = "transposed", .types = types, .group = 1}},
      .attributes = {{"perm", AttributeType::kInts, false, "default: the axes reversed"}},
      .infer = Infer,
      .cost = MoveCost,
      .samples = std::move(samples),
  };
}

WHIMBREL_REGISTER(Schema(1, 13, kAllTypesTo12, {"f32:2x3x4", "f16:2x3x4 perm=0,2,1"}));
WHIMBREL_REGISTER(Schema(13, INT_MAX, kAllTypes,
                         {"f32:2x3x4 perm=2,0,1", "f32:7x17", "f32:1x3x32x32 perm=0,2,3,1",
                          "f32:2x8x5x16 perm=0,2,1,3", "f32:", "f32:5", "f32:0x3 perm=1,0",
                          "f32:1x1x1 perm=2,1,0", "f16:3x5x7", "bf16:4x6 perm=1,0",
                          "u8:9x2x3 perm=1,0,2", "i64:2x3x4 perm=1,2,0", "bool:3x5",
                          "f64:2x1x3x2x2 perm=4,2,0,3,1", "f32:1x84x8400 perm=0,2,1"}));
WHIMBREL_REGISTER(Kernel{.op = "Transpose", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
