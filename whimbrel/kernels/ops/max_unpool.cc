// MaxUnpool: 0 everywhere but at I, where X's elements are put: MaxPool turned round.
//
// in   X             [batch, channels, in...]  f32 | f64 | f16, from 22 bf16
//      I             like X, i64: places in the flattened result of (in - 1) stride - pads + kernel
//      output_shape  i64, optional: dims of the output; the result stands in its first corner
// attr kernel_shape, pads, strides
// out  output        [batch, channels, (in - 1) stride - pads + kernel...], or output_shape
// Source: ONNX operator MaxUnpool (9, 11, 22).

#include <fmt/format.h>

#include "whimbrel/kernels/ops/check_dims.h"
#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/window.h"

namespace whimbrel {
namespace {

WindowAttributes ReadWindow(std::string_view op, const Attributes& attributes, int rank) {
  if (rank < 3) throw Error(Code::kInvalidData, fmt::format("{}: data of rank {}", op, rank));
  const WindowAttributes w = ReadWindowAttributes(op, attributes, rank - 2);
  for (int i = 0; i < w.spatial; ++i) {
    if (w.kernel[static_cast<size_t>(i)] == 0)
      throw Error(Code::kInvalidData, fmt::format("{}: kernel_shape is empty", op));
  }
  return w;
}

// Elements along an axis; kInvalidData when there is none.
Dim Extent(std::string_view op, const WindowAttributes& w, int axis, const Dim& in) {
  const auto i = static_cast<size_t>(axis);
  const Dim out =
      (in - Dim(1)) * Dim(w.stride[i]) + Dim(w.kernel[i] - w.pad_begin[i] - w.pad_end[i]);
  if (in.known() && (!out.known() || out.value() < 1 || in.value() < 1))
    throw Error(Code::kInvalidData, fmt::format("{}: axis {} has no element", op, axis));
  return out;
}

void Infer(InferContext& c) {
  if (!c.in(0).dims) return c.SetOut(0, c.in(0).dtype, std::nullopt);
  const Dims& x = *c.in(0).dims;
  const WindowAttributes w = ReadWindow(c.schema().name, c.attrs(), static_cast<int>(x.size()));
  CheckDims(c, 1, x);
  Dims out = x;
  for (int axis = 0; axis < w.spatial; ++axis) {
    const auto i = static_cast<size_t>(axis) + 2;
    out[i] = Extent(c.schema().name, w, axis, x[i]);
  }
  if (c.has(2)) {
    const auto wanted = c.Elements(2);
    if (wanted && wanted->size() != x.size())
      c.Fail(fmt::format("output_shape has {} entries for rank {}", wanted->size(), x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      const Dim asked = wanted ? (*wanted)[i] : Dim();
      if (asked.known() &&
          (asked.value() < 0 || (out[i].known() && asked.value() < out[i].value())))
        c.Fail(fmt::format("output_shape {} is smaller than the result {}", ToString(*wanted),
                           ToString(out)));
      out[i] = asked;
    }
  }
  c.SetOut(0, c.in(0).dtype, std::move(out));
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& in = call.x(0).shape();
  const std::string_view op = call.schema->name;
  const WindowAttributes w = ReadWindow(op, call.attrs(), in.rank());
  Shape result = in;
  for (int axis = 0; axis < w.spatial; ++axis)
    result.set(axis + 2, Extent(op, w, axis, in[axis + 2]).value());
  Shape out = result;
  for (int i = 0; call.has(2) && i < in.rank(); ++i) {
    const int64_t asked = call.x(2).elements() == in.rank() ? ElementAsInt64(call.x(2), i) : -1;
    if (asked < result[i])
      throw Error(Code::kInvalidData,
                  fmt::format("{}: output_shape is smaller than {}", op, ToString(result)));
    out.set(i, asked);
  }
  call.ResizeOutput(0, call.x(0).dtype(), out);
  const int64_t places = result.elements();
  const auto to_strides = out.Strides();
  const auto from_strides = result.Strides();
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    const int64_t* indices = call.x(1).data<int64_t>();
    T* y = call.y(0).data<T>();
    std::fill_n(y, call.y(0).elements(), T{});
    for (int64_t i = 0; i < call.x(0).elements(); ++i) {
      if (indices[i] < 0 || indices[i] >= places)
        throw Error(Code::kInvalidData,
                    fmt::format("{}: I holds {}, there are {} places", op, indices[i], places));
      int64_t rest = indices[i], at = 0;
      for (int d = 0; d < in.rank(); ++d) {
        const auto axis = static_cast<size_t>(d);
        at += rest / from_strides[axis] * to_strides[axis];
        rest %= from_strides[axis];
      }
      y[at] = x[i];
    }
  });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return {.name = "MaxUnpool",
          .since = since,
          .until = until,
          .inputs = {{.name = "X", .types = types, .group = 1},
                     {.name = "I", .types = TypeBit(DType::kInt64)},
                     {.name = "output_shape", .types = TypeBit(DType::kInt64), .optional = true}},
          .outputs = {{.name = "output", .types = types, .group = 1}},
          .attributes = {{.name = "kernel_shape", .type = AttributeType::kInts, .required = true},
                         {.name = "pads", .type = AttributeType::kInts, .note = "default 0"},
                         {.name = "strides", .type = AttributeType::kInts, .note = "default 1"}},
          .infer = Infer,
          .cost = MoveCost,
          .samples = std::move(samples),
          .doc = "maxima put back to their places"};
}

WHIMBREL_REGISTER(Schema(9, 11, kFloatTypesTo12,
                         {"f32:1x1x2x2 i64:1x1x2x2={5,7,13,15} kernel_shape=2,2 strides=2,2"}));
WHIMBREL_REGISTER(
    Schema(11, 22, kFloatTypesTo12,
           {"f32:1x1x2x2 i64:1x1x2x2={5,7,13,15} i64:4={1,1,5,5} kernel_shape=2,2 strides=2,2",
            "f32:2x3x4 i64:2x3x4@0..23 kernel_shape=2 strides=1 pads=1,0",
            "f32:1x1x1 i64:1x1x1={0} kernel_shape=1", "f32:0x3x4 i64:0x3x4 kernel_shape=2",
            "f64:1x1x2x2 i64:1x1x2x2={0,1,2,3} kernel_shape=1,1",
            "f16:1x2x3 i64:1x2x3@0..11 kernel_shape=2 strides=2"}));
WHIMBREL_REGISTER(Schema(22, INT_MAX, kFloatTypes,
                         {"bf16:1x2x3 i64:1x2x3@0..11 kernel_shape=2 strides=2"}));
WHIMBREL_REGISTER(Kernel{.op = "MaxUnpool", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
