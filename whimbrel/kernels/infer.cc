// InferContext and the ready-made infer functions.

#include "whimbrel/kernels/infer.h"

#include "whimbrel/base/error.h"
#include "whimbrel/kernels/kernels.h"

namespace whimbrel {

InferContext::InferContext(const OpSchema& schema, const Attributes& attributes, int opset,
                           std::span<const ValueInfo> inputs, size_t output_count)
    : schema_(schema), attributes_(attributes), opset_(opset), inputs_(inputs), outputs_(output_count) {}

const ValueInfo& InferContext::in(size_t i) const {
  static const ValueInfo absent;
  return i < inputs_.size() ? inputs_[i] : absent;
}

void InferContext::SetOut(size_t i, DType dtype, std::optional<Dims> dims) {
  if (i >= outputs_.size()) return;
  outputs_[i].dtype = dtype;
  outputs_[i].dims = std::move(dims);
}

std::optional<Dims> InferContext::Elements(size_t i) const {
  const ValueInfo& v = in(i);
  if (v.constant && v.constant->has_data() && IsInteger(v.constant->dtype())) {
    Dims dims;
    for (int64_t x : IntegerValues(*v.constant)) dims.emplace_back(x);
    return dims;
  }
  return v.elements;
}

std::optional<std::vector<int64_t>> InferContext::Integers(size_t i) const {
  const auto elements = Elements(i);
  if (!elements || !AllKnown(*elements)) return std::nullopt;
  std::vector<int64_t> values;
  values.reserve(elements->size());
  for (const Dim& d : *elements) values.push_back(d.value());
  return values;
}

void InferContext::Fail(const std::string& what, const std::string& hint) const {
  throw Error(Code::kInvalidData, std::string(schema_.name) + ": " + what, hint);
}

std::vector<ValueInfo> InferContext::InferSubgraph(std::string_view attribute, std::span<const ValueInfo> /*inputs*/) {
  throw Error(Code::kInternal, "inference of " + std::string(attribute) + " needs a graph");
}

void InferLikeFirst(InferContext& c) { c.SetOut(0, c.in(0).dtype, c.in(0).dims); }

namespace {

std::optional<Dims> BroadcastAll(InferContext& c) {
  if (!c.in(0).dims) return std::nullopt;
  Dims dims = *c.in(0).dims;
  for (size_t i = 1; i < c.inputs(); ++i) {
    if (!c.in(i).dims) return std::nullopt;
    auto next = BroadcastDims(dims, *c.in(i).dims);
    if (!next) {
      c.Fail("inputs " + ToString(dims) + " and " + ToString(*c.in(i).dims) + " do not broadcast",
             "dimensions must be equal or 1, aligned at the right");
    }
    dims = std::move(*next);
  }
  return dims;
}

}  // namespace

void InferBroadcast(InferContext& c) { c.SetOut(0, c.in(0).dtype, BroadcastAll(c)); }

void InferBroadcastBool(InferContext& c) { c.SetOut(0, DType::kBool, BroadcastAll(c)); }

}  // namespace whimbrel
