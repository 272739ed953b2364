// If: the outputs of one of two branches.
//
// in   cond         bool, one element
// attr then_branch, else_branch  graphs without inputs; they see the values around them
// out  outputs      those of the branch, whose types must agree
// Source: ONNX operator If (1, 11, 13, 16).

#include <fmt/format.h>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

// What holds whichever branch is taken.
ValueInfo Common(InferContext& c, const ValueInfo& a, const ValueInfo& b, size_t output) {
  // A branch that cannot work with these shapes says nothing; taking it is an error at run time.
  if (!a.present()) return b;
  if (!b.present()) return a;
  ValueInfo common;
  if (a.dtype != b.dtype && a.dtype != DType::kUndefined && b.dtype != DType::kUndefined) {
    c.Fail(fmt::format("output {} is {} in then_branch and {} in else_branch", output,
                       DTypeName(a.dtype), DTypeName(b.dtype)));
  }
  common.dtype = a.dtype == DType::kUndefined ? b.dtype : a.dtype;
  if (!a.dims || !b.dims || a.dims->size() != b.dims->size()) return common;
  common.dims.emplace(a.dims->size());
  for (size_t d = 0; d < a.dims->size(); ++d) {
    if ((*a.dims)[d].Same((*b.dims)[d])) (*common.dims)[d] = (*a.dims)[d];
  }
  if (a.elements && b.elements && a.elements->size() == b.elements->size()) {
    common.elements.emplace(a.elements->size());
    for (size_t i = 0; i < a.elements->size(); ++i) {
      if ((*a.elements)[i].Same((*b.elements)[i])) (*common.elements)[i] = (*a.elements)[i];
    }
  }
  return common;
}

std::vector<ValueInfo> InferBranch(InferContext& c, std::string_view name) {
  std::vector<ValueInfo> outputs = c.InferSubgraph(name, {});
  if (outputs.size() < c.outputs()) {
    c.Fail(fmt::format("{} has {} outputs, the node has {}", name, outputs.size(), c.outputs()));
  }
  return outputs;
}

void Infer(InferContext& c) {
  const auto& dims = c.in(0).dims;
  if (dims && AllKnown(*dims) && !ProductOf(*dims, 0, dims->size()).Is(1)) {
    c.Fail("cond must have one element, is " + ToString(*dims));
  }
  const Tensor* cond = c.in(0).constant.get();
  const bool known =
      cond != nullptr && cond->has_data() && cond->dtype() == DType::kBool && cond->elements() == 1;
  std::vector<ValueInfo> outputs;
  if (known) {
    outputs = InferBranch(c, cond->data<bool>()[0] ? "then_branch" : "else_branch");
  } else {
    outputs = InferBranch(c, "then_branch");
    const std::vector<ValueInfo> others = InferBranch(c, "else_branch");
    for (size_t i = 0; i < c.outputs(); ++i) outputs[i] = Common(c, outputs[i], others[i], i);
  }
  for (size_t i = 0; i < c.outputs(); ++i) {
    c.SetOut(i, outputs[i].dtype, outputs[i].dims);
    c.out(i).elements = outputs[i].elements;
  }
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& stream) {
  if (call.x(0).elements() != 1) {
    throw Error(Code::kInvalidData,
                fmt::format("If: cond must have one element, is {}", ToString(call.x(0).shape())));
  }
  const size_t branch = call.x(0).data<bool>()[0] ? 0 : 1;
  if (branch >= call.subgraphs.size()) throw Error(Code::kInternal, "If: the branches are missing");
  call.subgraphs[branch]->Run(stream, call.out);
}

// The branches count for themselves.
Cost IfCost(const OpCall& /*call*/) {
  return {};
}

OpSchema Schema(int since, int until, TypeMask types) {
  return OpSchema{
      .name = "If",
      .since = since,
      .until = until,
      .inputs = {{.name = "cond", .types = kBoolType}},
      .outputs = {{.name = "outputs", .types = types, .variadic = true}},
      .attributes = {{"then_branch", AttributeType::kGraph, true, "run when cond is true"},
                     {"else_branch", AttributeType::kGraph, true, "run when cond is false"}},
      .infer = Infer,
      .cost = IfCost,
  };
}

WHIMBREL_REGISTER(Schema(1, 16, kAllTypesTo12));
WHIMBREL_REGISTER(Schema(16, INT_MAX, kAllTypes));
WHIMBREL_REGISTER(Kernel{.op = "If", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
