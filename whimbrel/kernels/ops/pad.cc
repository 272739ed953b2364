// Pad: y = x with elements put before and after it on some axes; negative pads cut elements off.
//
// in   data            type T
//      pads            i64 [2 n]: all begins, then all ends; from opset 11
//      constant_value  T, one element, optional, default 0
//      axes            i32 | i64 [n], optional, from opset 18; default: all axes
// attr mode   "constant" (default), "reflect", "edge", from opset 19 "wrap"
//      pads   ints, value float, before opset 11
// out  output
// Negative pads cut first; reflect, edge and wrap then repeat what is left (reflect and wrap as
// often as needed).
// Source: ONNX operator Pad (2, 11, 13, 18, 19).

#include <algorithm>

#include <fmt/format.h>

#include "whimbrel/kernels/ops/axes.h"
#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

enum class Mode : uint8_t { kConstant, kReflect, kEdge, kWrap };

Mode ModeOf(const Attributes& attributes, const OpSchema& schema) {
  const std::string_view mode = attributes.String("mode", "constant");
  if (mode == "constant") return Mode::kConstant;
  if (mode == "reflect") return Mode::kReflect;
  if (mode == "edge") return Mode::kEdge;
  if (mode == "wrap" && schema.since >= 19) return Mode::kWrap;
  throw Error(Code::kInvalidData,
              fmt::format("Pad: mode \"{}\" is not known at opset {}", mode, schema.since),
              "constant, reflect, edge or, from opset 19, wrap");
}

std::optional<Dims> InferDims(InferContext& c) {
  ModeOf(c.attrs(), c.schema());
  const auto& in = c.in(0).dims;
  const IntegerList known_pads = InferIntegers(c, "pads", 1);
  if (!in) return std::nullopt;
  const size_t rank = in->size();
  std::vector<int64_t> axes;
  if (c.schema().since >= 18 && c.has(3)) {
    const IntegerList given = InferIntegers(c, "axes", 3);
    if (!given.values) return Dims(rank);
    axes = *given.values;
  } else {
    for (size_t d = 0; d < rank; ++d) axes.push_back(static_cast<int64_t>(d));
  }
  InferAxisMask(c, axes, static_cast<int>(rank), false);
  if (known_pads.count && *known_pads.count != 2 * static_cast<int64_t>(axes.size())) {
    c.Fail(fmt::format("pads has {} values for {} axes of {}", *known_pads.count, axes.size(),
                       ToString(*in)),
           "it takes two for each axis: all begins, then all ends");
  }
  std::optional<Dims> pads;
  if (known_pads.values) {
    pads.emplace(known_pads.values->begin(), known_pads.values->end());
  } else {
    pads = SmallElements(c, 1);
  }
  Dims out = *in;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(NormalizeAxis(axes[i], static_cast<int>(rank), "Pad"));
    if (!pads || pads->size() != 2 * axes.size()) {
      out[axis] = Dim();
      continue;
    }
    out[axis] = out[axis] + ((*pads)[i] + (*pads)[i + axes.size()]);
    if (out[axis].known() && out[axis].value() < 0) {
      c.Fail(fmt::format("pads {} and {} leave {} of axis {} of {}", ToString((*pads)[i]),
                         ToString((*pads)[i + axes.size()]), out[axis].value(), axis,
                         ToString(*in)));
    }
  }
  return out;
}

void Infer(InferContext& c) {
  c.SetOut(0, c.in(0).dtype, InferDims(c));
}

// A tensor has at most 2^58 elements; with pads of that size sums stay within 64 bits.
constexpr int64_t kMostPadding = int64_t{1} << 58;

// One axis: element i of the output reads element Source(i) of the input, or the constant (-1).
struct PadAxis {
  int64_t shift = 0;  // begin, of either sign
  int64_t first = 0;  // of the elements that are left after cutting
  int64_t length = 0;
  Mode mode = Mode::kConstant;

  int64_t Source(int64_t i) const {
    int64_t at = i - shift - first;  // within what is left
    if (at < 0 || at >= length) {
      if (mode == Mode::kConstant) return -1;
      if (mode == Mode::kEdge || length == 1) {
        at = at < 0 ? 0 : length - 1;
      } else {
        const int64_t period = mode == Mode::kWrap ? length : 2 * (length - 1);
        at %= period;
        if (at < 0) at += period;
        if (at >= length) at = period - at;
      }
    }
    return first + at;
  }
};

template <typename T>
T ConstantOf(const OpCall& call) {
  if (call.schema->since < 11) {
    const double value = call.attrs().Float("value", 0);
    return Narrow<T>(static_cast<WideOf<T>>(value));
  }
  if (!call.has(2) || call.x(2).elements() == 0) return T{};
  return call.x(2).data<T>()[0];
}

template <typename T>
void PadTyped(const OpCall& call, const std::array<PadAxis, kMaxRank>& axes) {
  const Shape& in = call.x(0).shape();
  const Shape& out = call.y(0).shape();
  const T constant = ConstantOf<T>(call);
  const T* x = call.x(0).data<T>();
  T* y = call.y(0).data<T>();
  if (out.rank() == 0) {
    y[0] = x[0];
    return;
  }
  const int last = out.rank() - 1;
  const int64_t length = out[last];
  const auto strides = in.Strides();
  ParallelFor(out.elements() / length, 1 + 4096 / length, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t rest = row;
      int64_t from = 0;
      bool outside = false;
      for (int d = last - 1; d >= 0; --d) {
        const int64_t at = axes[static_cast<size_t>(d)].Source(rest % out[d]);
        rest /= out[d];
        outside = outside || at < 0;
        from += at * strides[static_cast<size_t>(d)];
      }
      T* to = y + row * length;
      for (int64_t i = 0; i < length; ++i) {
        const int64_t at = outside ? -1 : axes[static_cast<size_t>(last)].Source(i);
        to[i] = at < 0 ? constant : x[from + at];
      }
    }
  });
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& in = call.x(0).shape();
  const Mode mode = ModeOf(call.attrs(), *call.schema);
  const RunIntegers pads = ReadIntegers(call, "pads", 1);
  const RunIntegers given =
      call.schema->since >= 18 ? ReadIntegers(call, "axes", 3) : RunIntegers{};
  const int count = given.present ? given.count : in.rank();
  if (pads.count != 2 * count) {
    throw Error(Code::kInvalidData, fmt::format("Pad: {} pads for {} axes", pads.count, count));
  }
  std::array<PadAxis, kMaxRank> axes;
  std::array<int64_t, kMaxRank> dims{};
  for (int d = 0; d < in.rank(); ++d) {
    axes[static_cast<size_t>(d)] = {.shift = 0, .first = 0, .length = in[d], .mode = mode};
    dims[static_cast<size_t>(d)] = in[d];
  }
  for (int i = 0; i < count; ++i) {
    const int d = NormalizeAxis(given.present ? given[i] : i, in.rank(), "Pad");
    PadAxis& axis = axes[static_cast<size_t>(d)];
    const int64_t before = pads[i];
    const int64_t after = pads[i + count];
    if (std::max(before, after) > kMostPadding || std::min(before, after) < -kMostPadding) {
      throw Error(Code::kInvalidData,
                  fmt::format("Pad: pads {} and {} are too large", before, after));
    }
    dims[static_cast<size_t>(d)] = in[d] + before + after;
    axis.shift = before;
    axis.first = std::min(in[d], before < 0 ? -before : 0);
    axis.length = std::max<int64_t>(0, in[d] + std::min<int64_t>(after, 0) - axis.first);
    if (mode != Mode::kConstant && axis.length == 0 && dims[static_cast<size_t>(d)] > 0) {
      throw Error(Code::kInvalidData,
                  fmt::format("Pad: axis {} of {} has no element to repeat", d, ToString(in)));
    }
  }
  const Shape out(std::span<const int64_t>(dims.data(), static_cast<size_t>(in.rank())));
  call.ResizeOutput(0, call.x(0).dtype(), out);
  if (out.elements() == 0) return;
  DispatchReference<kAllTypes>(call, call.x(0).dtype(),
                               [&]<typename T>() { PadTyped<T>(call, axes); });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema schema{
      .name = "Pad",
      .since = since,
      .until = until,
      .inputs = {{.name = "data", .types = types, .group = 1}},
      .outputs = {{.name = "output", .types = types, .group = 1}},
      .attributes = {{"mode", AttributeType::kString, false,
                      since < 19 ? "constant (default), reflect, edge"
                                 : "constant (default), reflect, edge, wrap"}},
      .infer = Infer,
      .cost = MoveCost,
      .samples = std::move(samples),
  };
  if (since < 11) {
    schema.attributes.push_back({"pads", AttributeType::kInts, true, "all begins, then all ends"});
    schema.attributes.push_back({"value", AttributeType::kFloat, false, "default 0"});
    return schema;
  }
  schema.inputs.push_back({.name = "pads", .types = TypeBit(DType::kInt64)});
  schema.inputs.push_back({.name = "constant_value", .types = types, .optional = true, .group = 1});
  if (since >= 18) {
    schema.inputs.push_back({.name = "axes", .types = kIndexTypes, .optional = true});
  }
  return schema;
}

WHIMBREL_REGISTER(Schema(2, 11, kFloatTypesTo12,
                         {"f32:3x4 pads=0,2,1,0 value=1.5",
                          "f16:1x2x5 pads=0,0,2,0,0,1 mode=reflect"}));
WHIMBREL_REGISTER(Schema(11, 13, kNumericTypesTo12,
                         {"f32:3x4 i64:4={0,2,1,0} f32:={-1}", "i64:6 i64:2={-2,1} mode=edge"}));
WHIMBREL_REGISTER(Schema(13, 18, kAllTypes,
                         {"f32:1x3x8x8 i64:8={0,0,1,1,0,0,1,1}", "bf16:2x3 i64:4={1,1,0,0}",
                          "bool:3 i64:2={1,1} bool:={1}"}));
WHIMBREL_REGISTER(Schema(18, 19, kAllTypes,
                         {"f32:2x3x4 i64:2={1,2} - i64:1={-1} mode=edge",
                          "f32:3x4 i64:4={1,1,1,1} f32:={2} i32:2={1,0}"}));
WHIMBREL_REGISTER(
    Schema(19, INT_MAX, kAllTypes,
           {"f32:1x3x32x32 i64:8={0,0,3,3,0,0,3,3}", "f32:6 i64:2={-2,1}",
            "f32:2x5 i64:2={2,3} - i64:1={1} mode=wrap", "f32:3x5 i64:4={2,2,1,4} mode=reflect",
            "f32:3x4 i64:4={1,0,2,3} mode=edge", "f32:2x3 i64:4={-1,2,0,-1} mode=reflect",
            "f32:3x4 i64:2@0..2 f32:={inf} i64:1={0}", "f32:0x3 i64:4={1,0,1,0}", "f32: i64:0",
            "f16:7x17 i64:4={1,2,3,4} f16:={0.5}", "bf16:4 i64:2={5,9} mode=wrap",
            "i64:4 i64:2={3,3} mode=reflect", "u8:1x1 i64:4={2,2,2,2} mode=reflect",
            "bool:3 i64:2={1,1} bool:={1}", "f64:3 i64:2={1,0} f64:1={-3}", "i8:5 i64:2={-5,0}",
            "f32:1x64x80x80 i64:8={0,0,1,1,0,0,1,1}"}));
WHIMBREL_REGISTER(Kernel{.op = "Pad", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
