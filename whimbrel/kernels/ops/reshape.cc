// Reshape: y = the elements of x in the same order under another shape.
//
// in   data      any type
//      shape     i64 [rank of y]; 0 = the dim of x at that place (a real 0 with allowzero);
//                one -1 = what is left
// attr allowzero int, default 0, from opset 14
// out  reshaped
// Source: ONNX operator Reshape (5, 13, 14).

#include <algorithm>

#include <fmt/format.h>

#include "whimbrel/kernels/ops/axes.h"
#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/move.h"

namespace whimbrel {
namespace {

// The dim that -1 stands for: the product of `in` divided by that of the other dims of `out`; equal
// symbols cancel out. Unknown when it cannot be said.
Dim InferRest(InferContext& c, const Dims& in, const Dims& out, size_t rest) {
  Dims above = in;
  Dims below;
  for (size_t i = 0; i < out.size(); ++i) {
    if (i == rest) continue;
    if (out[i].Is(0)) c.Fail("-1 cannot be inferred beside a dim of 0");
    const auto same = std::find_if(above.begin(), above.end(),
                                   [&](const Dim& d) { return !d.known() && d.Same(out[i]); });
    if (same != above.end()) {
      above.erase(same);
    } else {
      below.push_back(out[i]);
    }
  }
  const auto known = [](const Dim& d) { return d.known(); };
  const auto above_symbols = std::stable_partition(above.begin(), above.end(), known);
  const auto below_symbols = std::stable_partition(below.begin(), below.end(), known);
  const Dim number_above = ProductOf(above, 0, static_cast<size_t>(above_symbols - above.begin()));
  const Dim number_below = ProductOf(below, 0, static_cast<size_t>(below_symbols - below.begin()));
  if (!number_above.known() || !number_below.known()) return {};
  if (number_above.Is(0)) return below_symbols == below.end() ? Dim(0) : Dim();
  if (below_symbols != below.end()) return {};
  const bool divides = number_above.value() % number_below.value() == 0;
  if (above_symbols == above.end()) {
    if (!divides) {
      c.Fail(fmt::format("{} elements of {} do not divide into {}", number_above.value(),
                         ToString(in), ToString(out)));
    }
    return number_above.value() / number_below.value();
  }
  const Dim symbols =
      ProductOf(above, static_cast<size_t>(above_symbols - above.begin()), above.size());
  if (divides) return Dim(number_above.value() / number_below.value()) * symbols;
  return FloorDiv(number_above * symbols, number_below);
}

std::optional<Dims> InferDims(InferContext& c) {
  const auto& in = c.in(0).dims;
  const auto& shape_dims = c.in(1).dims;
  if (shape_dims && shape_dims->size() > 1) {
    c.Fail(fmt::format("shape must have rank 1, is {}", ToString(*shape_dims)));
  }
  const auto shape = SmallElements(c, 1);
  if (!shape) {
    if (!shape_dims || shape_dims->size() != 1 || !shape_dims->front().known()) return std::nullopt;
    const int64_t rank = shape_dims->front().value();
    if (rank > kMaxRank) {
      c.Fail(fmt::format("shape has {} dims, at most {} are possible", rank, kMaxRank));
    }
    return Dims(static_cast<size_t>(std::max<int64_t>(rank, 0)));
  }
  const bool allow_zero = c.attrs().Int("allowzero", 0) != 0;
  Dims out = *shape;
  std::optional<size_t> rest;
  for (size_t i = 0; i < out.size(); ++i) {
    if (!out[i].known()) continue;
    const int64_t dim = out[i].value();
    if (dim < -1) c.Fail(fmt::format("dim {} of shape {} is negative", i, ToString(*shape)));
    if (dim == -1) {
      if (rest) c.Fail(fmt::format("shape {} has more than one -1", ToString(*shape)));
      rest = i;
    } else if (dim == 0 && !allow_zero) {
      if (!in) {
        out[i] = Dim();
      } else if (i < in->size()) {
        out[i] = (*in)[i];
      } else {
        c.Fail(
            fmt::format("shape {} copies dim {}, data is {}", ToString(*shape), i, ToString(*in)));
      }
    }
  }
  if (rest) {
    out[*rest] = Dim();
    if (in) out[*rest] = InferRest(c, *in, out, *rest);
  } else if (in && AllKnown(*in) && AllKnown(out)) {
    const Dim have = ProductOf(*in, 0, in->size());
    const Dim want = ProductOf(out, 0, out.size());
    if (!have.Same(want)) {
      c.Fail(fmt::format("data {} has {} elements, shape {} has {}", ToString(*in), ToString(have),
                         ToString(out), ToString(want)),
             "the two must hold equally many elements");
    }
  }
  return out;
}

void Infer(InferContext& c) {
  c.SetOut(0, c.in(0).dtype, InferDims(c));
  if (c.out(0).rank() == 0 || c.out(0).rank() == 1) c.out(0).elements = SmallElements(c, 0);
}

[[noreturn]] void ThrowMisfit(const Shape& in, const RunIntegers& wanted) {
  std::string text;
  for (int i = 0; i < wanted.count; ++i) text += (i == 0 ? "" : ", ") + std::to_string(wanted[i]);
  throw Error(Code::kInvalidData,
              fmt::format("Reshape: data {} does not fit shape [{}]", ToString(in), text));
}

Shape TargetShape(const Shape& in, const RunIntegers& wanted, bool allow_zero) {
  std::array<int64_t, 2 * kMaxRank> dims = wanted.values;
  int rest = -1;
  int64_t product = 1;
  bool overflow = false;
  for (int i = 0; i < wanted.count; ++i) {
    int64_t& dim = dims[static_cast<size_t>(i)];
    if (dim == 0 && !allow_zero) {
      if (i >= in.rank()) ThrowMisfit(in, wanted);
      dim = in[i];
    }
    if (dim < -1 || (dim == -1 && rest >= 0)) ThrowMisfit(in, wanted);
    if (dim == -1) {
      rest = i;
    } else {
      overflow = __builtin_mul_overflow(product, dim, &product) || overflow;
    }
  }
  if (rest >= 0) {
    if (overflow || product == 0 || in.elements() % product != 0) ThrowMisfit(in, wanted);
    dims[static_cast<size_t>(rest)] = in.elements() / product;
  }
  const Shape shape(std::span<const int64_t>(dims.data(), static_cast<size_t>(wanted.count)));
  if (shape.elements() != in.elements()) ThrowMisfit(in, wanted);
  return shape;
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& in = call.x(0).shape();
  const RunIntegers wanted = ReadIntegers(call, "shape", 1);
  const bool allow_zero = call.attrs().Int("allowzero", 0) != 0;
  call.ResizeOutput(0, call.x(0).dtype(), TargetShape(in, wanted, allow_zero));
  CopyView(call);
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema schema{
      .name = "Reshape",
      .since = since,
      .until = until,
      .inputs = {{.name = "data", .types = types, .group = 1},
                 {.name = "shape", .types = TypeBit(DType::kInt64)}},
      .outputs = {{.name = "reshaped", .types = types, .group = 1}},
      .infer = Infer,
      .cost = MoveCost,
      .samples = std::move(samples),
  };
  if (since >= 14) {
    schema.attributes = {{"allowzero", AttributeType::kInt, false,
                          "default 0: a 0 in shape copies the dim; 1: it is a real 0"}};
  }
  return schema;
}

WHIMBREL_REGISTER(Schema(5, 13, kAllTypesTo12, {"f32:2x3x4 i64:2={0,-1}", "i64:4 i64:2={2,2}"}));
WHIMBREL_REGISTER(Schema(13, 14, kAllTypes, {"f32:2x3x4 i64:2={6,4}", "bf16:6 i64:2={-1,2}"}));
WHIMBREL_REGISTER(Schema(14, INT_MAX, kAllTypes,
                         {"f32:2x3x4 i64:2={0,-1}", "f32:2x3x4 i64:3={4,2,3}", "f32:1x1 i64:0",
                          "f32: i64:1={1}", "f32:2x3 i64:1@6..6", "f32:0x3 i64:2={3,0} allowzero=1",
                          "f32:0x3 i64:2={0,3}", "f16:7x17 i64:1={-1}", "bf16:2x2 i64:4={1,2,1,-1}",
                          "i64:6 i64:2={2,3}", "bool:4x2 i64:2={2,-1}", "u8:9 i64:2={3,3}",
                          "f64:3x4 i64:2={-1,1}", "f32:1x64x80x80 i64:3={1,64,-1}"}));
WHIMBREL_REGISTER(Kernel{.op = "Reshape", .name = "view", .rank = 10, .view = true, .run = Run});
WHIMBREL_REGISTER(Kernel{.op = "Reshape", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
