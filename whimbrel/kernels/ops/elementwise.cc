// Schema builders and inference of element-by-element ops.

#include "whimbrel/kernels/ops/elementwise.h"

#include <utility>

namespace whimbrel {

OpSchema MakeSchema(const ElementwiseSchema& e) {
  OpSchema schema;
  schema.name = e.name;
  schema.since = e.since;
  schema.until = e.until;
  for (size_t i = 0; i < e.inputs.size(); ++i) {
    schema.inputs.push_back({.name = e.inputs[i],
                             .types = e.types,
                             .variadic = e.variadic && i + 1 == e.inputs.size(),
                             .group = 1});
  }
  const bool like_input = e.out_types == 0;
  schema.outputs.push_back(
      {.name = e.output, .types = like_input ? e.types : e.out_types, .group = like_input ? 1 : 0});
  schema.attributes = e.attributes;
  schema.infer = e.infer;
  schema.cost = e.cost;
  schema.samples = e.samples;
  return schema;
}

OpSchema ArithmeticSchema(std::string_view name, int since, void (*infer)(InferContext&),
                          std::vector<std::string_view> samples) {
  WHIMBREL_CHECK(since == 7 || since == 13 || since == 14);
  const TypeMask types = since == 7    ? kFloatTypesTo12 | kWideIntegerTypes
                         : since == 13 ? kFloatTypes | kWideIntegerTypes
                                       : kNumericTypes;
  return MakeSchema({.name = name,
                     .since = since,
                     .until = since == 7    ? 13
                              : since == 13 ? 14
                                            : INT_MAX,
                     .types = types,
                     .inputs = {"A", "B"},
                     .output = "C",
                     .infer = infer,
                     .samples = std::move(samples)});
}

Cost MoveCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops = 0;
  return cost;
}

Cost VariadicCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops *= static_cast<double>(call.in.size()) - 1;
  return cost;
}

// A Dim is an int64_t; uint64_t would be cut off at its largest value.
bool HoldsElements(DType dtype) {
  return (IsInteger(dtype) && dtype != DType::kUint64) || dtype == DType::kBool;
}

std::optional<Dims> SmallElements(const InferContext& c, size_t i) {
  const ValueInfo& v = c.in(i);
  std::optional<Dims> elements;
  if (v.constant && v.constant->has_data()) {
    const Tensor& t = *v.constant;
    if (t.shape().rank() > 1 || t.elements() > kMaxElements) return std::nullopt;
    if (!HoldsElements(t.dtype())) return std::nullopt;
    elements.emplace();
    for (int64_t x : IntegerValues(t)) elements->emplace_back(x);
  } else if (v.dims && v.dims->size() <= 1) {
    elements = v.elements;
  }
  if (elements && elements->size() > static_cast<size_t>(kMaxElements)) return std::nullopt;
  return elements;
}

Dim FitElement(const Dim& value, DType dtype) {
  if (dtype == DType::kBool) return value.Is(0) || value.Is(1) ? value : Dim();
  if (!value.known()) return dtype == DType::kInt64 || dtype == DType::kInt32 ? value : Dim();
  bool fits = false;
  DispatchType(dtype, [&]<typename T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      fits = std::in_range<T>(value.value());
    }
  });
  return fits ? value : Dim();
}

namespace {

Dims BroadcastElements(const Dims& a, const Dims& b, size_t count, DimOp op, DType dtype) {
  Dims result(count);
  for (size_t i = 0; i < count; ++i) {
    result[i] = FitElement(op(a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i]), dtype);
  }
  return result;
}

// Elements of a tensor of `dims`, of which both operands have one or all; 0 elements included.
std::optional<size_t> ElementCount(const ValueInfo& out, const Dims& a, const Dims& b) {
  if (!out.dims || out.dims->size() > 1) return std::nullopt;
  const Dim count = out.dims->empty() ? Dim(1) : out.dims->front();
  if (!count.known() || count.value() < 0 || count.value() > kMaxElements) return std::nullopt;
  const auto n = static_cast<size_t>(count.value());
  if ((a.size() != 1 && a.size() != n) || (b.size() != 1 && b.size() != n)) return std::nullopt;
  return n;
}

}  // namespace

void SetBroadcastElements(InferContext& c, DimOp op, size_t a, size_t b) {
  ValueInfo& out = c.out(0);
  if (!HoldsElements(out.dtype)) return;
  const auto x = SmallElements(c, a);
  const auto y = SmallElements(c, b);
  if (!x || !y) return;
  const auto count = ElementCount(out, *x, *y);
  if (count) out.elements = BroadcastElements(*x, *y, *count, op, out.dtype);
}

void InferArithmetic(InferContext& c, DimOp op) {
  InferBroadcast(c);
  ValueInfo& out = c.out(0);
  if (!HoldsElements(out.dtype)) return;
  auto folded = SmallElements(c, 0);
  for (size_t i = 1; folded && i < c.inputs(); ++i) {
    const auto next = SmallElements(c, i);
    if (!next) return;
    const auto count = ElementCount(out, *folded, *next);
    if (!count) return;
    folded = BroadcastElements(*folded, *next, *count, op, out.dtype);
  }
  out.elements = std::move(folded);
}

}  // namespace whimbrel
