// Directions, shapes and checks of recurrent ops.

#include "whimbrel/kernels/ops/recurrent.h"

#include <fmt/format.h>

namespace whimbrel {

RnnDirection ReadRnnDirection(std::string_view op, const Attributes& attributes) {
  const std::string_view text = attributes.String("direction", "forward");
  if (text == "forward") return {1, false};
  if (text == "reverse") return {1, true};
  if (text == "bidirectional") return {2, false};
  throw Error(Code::kInvalidData, fmt::format("{}: direction \"{}\" is not known", op, text),
              "it is forward, reverse or bidirectional");
}

namespace {

Dim HiddenSize(const InferContext& c) {
  if (c.attrs().Has("hidden_size")) {
    const int64_t hidden = c.attrs().Int("hidden_size", 0);
    if (hidden < 1 || hidden > (int64_t{1} << 31)) c.Fail(fmt::format("hidden_size is {}", hidden));
    return hidden;
  }
  const auto& r = c.in(kRnnR).dims;
  return r && r->size() == 3 ? (*r)[2] : Dim();
}

}  // namespace

RnnShapes InferRnn(InferContext& c, int gates, std::span<const RnnFunction> functions) {
  const RnnDirection direction = ReadRnnDirection(c.schema().name, c.attrs());
  std::array<RnnActivation, 6> activations;
  WHIMBREL_CHECK(functions.size() <= 3);
  ReadRnnActivations(
      c.schema().name, c.attrs(), functions,
      std::span(activations).first(static_cast<size_t>(direction.count) * functions.size()));
  const int64_t layout = c.attrs().Int("layout", 0);
  if (layout != 0 && layout != 1) c.Fail(fmt::format("layout is 0 or 1, is {}", layout));
  const double clip = c.attrs().Float("clip", 1);
  if (!(clip >= 0)) c.Fail(fmt::format("clip must not be negative, is {}", clip));
  const Dim dirs = direction.count, hidden = HiddenSize(c), rows = hidden * Dim(gates);
  Dim seq, batch, input;
  if (c.in(kRnnX).dims) {
    const Dims& x = *c.in(kRnnX).dims;
    if (x.size() != 3) c.Fail("X must have rank 3, is " + ToString(x));
    seq = x[layout == 1 ? 1 : 0];
    batch = x[layout == 1 ? 0 : 1];
    input = x[2];
  }
  RnnShapes shapes{dirs, hidden,
                   layout == 1 ? Dims{batch, dirs, hidden} : Dims{dirs, batch, hidden}};
  CheckDims(c, kRnnW, {dirs, rows, input});
  CheckDims(c, kRnnR, {dirs, rows, hidden});
  CheckDims(c, kRnnB, {dirs, rows * Dim(2)});
  CheckDims(c, kRnnLengths, {batch});
  CheckDims(c, kRnnH, shapes.state);
  const DType type = c.in(kRnnX).dtype;
  c.SetOut(0, type, layout == 1 ? Dims{batch, seq, dirs, hidden} : Dims{seq, dirs, batch, hidden});
  c.SetOut(1, type, shapes.state);
  return shapes;
}

RnnSizes RnnSizesOf(const OpCall& call) {
  const Shape& x = call.x(kRnnX).shape();
  const Shape& r = call.x(kRnnR).shape();
  const bool batch_first = call.attrs().Int("layout", 0) == 1;
  return {x[batch_first ? 1 : 0], x[batch_first ? 0 : 1], x[2], r[2], r[0], batch_first};
}

Cost RnnCost(const OpCall& call, int gates) {
  const RnnSizes s = RnnSizesOf(call);
  Cost cost = DefaultCost(call);
  cost.flops = 2.0 * gates * static_cast<double>(s.dirs * s.seq * s.batch) *
               static_cast<double>(s.hidden) * static_cast<double>(s.input + s.hidden);
  return cost;
}

int64_t RnnSteps(const OpCall& call, const RnnSizes& s, int64_t entry) {
  return call.has(kRnnLengths) ? call.x(kRnnLengths).data<int32_t>()[entry] : s.seq;
}

void CheckRnnLengths(const OpCall& call, const RnnSizes& s) {
  for (int64_t b = 0; call.has(kRnnLengths) && b < s.batch; ++b) {
    const int64_t steps = RnnSteps(call, s, b);
    if (steps >= 0 && steps <= s.seq) continue;
    throw Error(Code::kInvalidData,
                fmt::format("{}: sequence_lens[{}] is {}, the sequence has {} steps",
                            call.schema->name, b, steps, s.seq));
  }
}

std::vector<Formal> RnnInputs(TypeMask types) {
  return {{.name = "X", .types = types, .group = 1},
          {.name = "W", .types = types, .group = 1},
          {.name = "R", .types = types, .group = 1},
          {.name = "B", .types = types, .optional = true, .group = 1},
          {.name = "sequence_lens", .types = TypeBit(DType::kInt32), .optional = true},
          {.name = "initial_h", .types = types, .optional = true, .group = 1}};
}

std::vector<AttributeSpec> RnnAttributes(int since, std::string_view default_functions) {
  std::vector<AttributeSpec> specs{
      {.name = "activation_alpha", .type = AttributeType::kFloats},
      {.name = "activation_beta", .type = AttributeType::kFloats},
      {.name = "activations", .type = AttributeType::kStrings, .note = default_functions},
      {.name = "clip", .type = AttributeType::kFloat, .note = "default: none"},
      {.name = "direction",
       .type = AttributeType::kString,
       .note = "forward (default), reverse, bidirectional"},
      {.name = "hidden_size", .type = AttributeType::kInt, .note = "default: that of R"}};
  if (since >= 14) {
    specs.push_back({.name = "layout", .type = AttributeType::kInt, .note = "1: batch first"});
  }
  return specs;
}

size_t RnnWorkspace(const OpCall& call, int64_t doubles) {
  const RnnSizes s = RnnSizesOf(call);
  return WidenedBytes(call.x(kRnnX)) + WidenedBytes(call.x(kRnnW)) + WidenedBytes(call.x(kRnnR)) +
         static_cast<size_t>(s.dirs * s.batch * doubles) * sizeof(double);
}

}  // namespace whimbrel
