// Loop: a body run again and again, its results carried from one round to the next.
//
// in   M      i64, one element, optional   most rounds; left out = no limit
//      cond   bool, one element, optional  whether the first round runs; left out = true
//      v_initial...                        carried values at the start
// attr body   graph: (round i64, cond bool, carried...) -> (cond bool, carried..., scanned...)
// out  v_final...   carried values after the last round
//      scan_outputs...  what each round scanned, stacked on a new first axis
// Source: ONNX operator Loop (1, 11, 13, 16).

#include <fmt/format.h>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

// The dims that hold before and after a round.
std::optional<Dims> Invariant(const std::optional<Dims>& before, const std::optional<Dims>& after) {
  if (!before || !after || before->size() != after->size()) return std::nullopt;
  Dims dims(before->size());
  for (size_t d = 0; d < dims.size(); ++d) {
    if ((*before)[d].Same((*after)[d])) dims[d] = (*before)[d];
  }
  return dims;
}

void Infer(InferContext& c) {
  const size_t carried = c.inputs() > 2 ? c.inputs() - 2 : 0;
  std::vector<ValueInfo> inputs(2 + carried);
  inputs[0].dtype = DType::kInt64;
  inputs[0].dims = Dims{};
  inputs[1].dtype = DType::kBool;
  inputs[1].dims = Dims{};
  for (size_t i = 0; i < carried; ++i) {
    inputs[2 + i].dtype = c.in(2 + i).dtype;
    inputs[2 + i].dims = c.in(2 + i).dims;  // the value itself changes from round to round
  }
  std::vector<ValueInfo> outputs;
  // Each pass only loses dims, so this ends; ranks are few.
  for (bool changed = true; changed;) {
    changed = false;
    outputs = c.InferSubgraph("body", inputs);
    if (outputs.size() < 1 + carried) {
      c.Fail(fmt::format("body has {} outputs for cond and {} carried values", outputs.size(),
                         carried));
    }
    for (size_t i = 0; i < carried; ++i) {
      ValueInfo& before = inputs[2 + i];
      const ValueInfo& after = outputs[1 + i];
      if (!after.present()) continue;
      if (after.dtype != before.dtype && after.dtype != DType::kUndefined &&
          before.dtype != DType::kUndefined) {
        c.Fail(fmt::format("carried value {} goes in as {} and comes out as {}", i,
                           DTypeName(before.dtype), DTypeName(after.dtype)));
      }
      const std::optional<Dims> dims = Invariant(before.dims, after.dims);
      const bool same =
          dims.has_value() == before.dims.has_value() &&
          (!dims || std::equal(dims->begin(), dims->end(), before.dims->begin(),
                               [](const Dim& a, const Dim& b) {
                                 return a.Same(b) || (!a.known() && a.text().empty() &&
                                                      !b.known() && b.text().empty());
                               }));
      if (!same) {
        before.dims = dims;
        changed = true;
      }
    }
  }
  for (size_t i = 0; i < c.outputs(); ++i) {
    if (i < carried) {
      c.SetOut(i, inputs[2 + i].dtype, inputs[2 + i].dims);
      continue;
    }
    if (1 + i >= outputs.size())
      c.Fail(
          fmt::format("the node has {} outputs, body gives {}", c.outputs(), outputs.size() - 1));
    const ValueInfo& scanned = outputs[1 + i];
    std::optional<Dims> dims;
    if (scanned.dims) {
      dims = Dims{Dim()};
      dims->insert(dims->end(), scanned.dims->begin(), scanned.dims->end());
    }
    c.SetOut(i, scanned.dtype, std::move(dims));
  }
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& stream) {
  if (call.subgraphs.empty()) throw Error(Code::kInternal, "Loop: the body is missing");
  call.subgraphs[0]->Run(stream, call.out);
}

// The body counts for itself.
Cost LoopCost(const OpCall& /*call*/) {
  return {};
}

OpSchema Schema(int since, int until, TypeMask types) {
  return OpSchema{
      .name = "Loop",
      .since = since,
      .until = until,
      .inputs = {{.name = "M", .types = TypeBit(DType::kInt64), .optional = true},
                 {.name = "cond", .types = kBoolType, .optional = true},
                 {.name = "v_initial", .types = types, .optional = true, .variadic = true}},
      .outputs = {{.name = "v_final_and_scan_outputs", .types = types, .variadic = true}},
      .attributes = {{"body", AttributeType::kGraph, true, "what one round does"}},
      .infer = Infer,
      .cost = LoopCost,
      .matrix_op = true,  // rounds sum up: align judges the result of all of them
  };
}

WHIMBREL_REGISTER(Schema(1, 16, kAllTypesTo12));
WHIMBREL_REGISTER(Schema(16, INT_MAX, kAllTypes));
WHIMBREL_REGISTER(Kernel{.op = "Loop", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
