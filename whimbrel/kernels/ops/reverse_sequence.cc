// ReverseSequence: the first lens[b] steps of sequence b run backwards, the others stay.
//
// in   input          any type, rank >= 2
//      sequence_lens  i64 [batch], each in [0, time]
// attr batch_axis     int, 0 or 1 (default)
//      time_axis      int, 0 (default) or 1, the other one
// out  Y              like input
// Source: ONNX operator ReverseSequence (10, 28).

#include <cstring>

#include <fmt/format.h>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  const int64_t batch = c.attrs().Int("batch_axis", 1);
  const int64_t time = c.attrs().Int("time_axis", 0);
  if (batch < 0 || batch > 1 || time != 1 - batch) {
    c.Fail(fmt::format("batch_axis is {} and time_axis {}", batch, time),
           "one is 0 and the other 1");
  }
  const auto& in = c.in(0).dims;
  const auto& lens = c.in(1).dims;
  if (in && in->size() < 2) c.Fail("input must have rank 2 or more, is " + ToString(*in));
  if (lens && lens->size() != 1) c.Fail("sequence_lens must have rank 1, is " + ToString(*lens));
  if (in && lens) {
    const Dim& have = lens->front();
    const Dim& want = (*in)[static_cast<size_t>(batch)];
    if (have.known() && want.known() && !have.Same(want)) {
      c.Fail(fmt::format("sequence_lens has {} values for input {} with batch_axis {}",
                         have.value(), ToString(*in), batch));
    }
  }
  InferLikeFirst(c);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& shape = call.x(0).shape();
  const bool batch_first = call.attrs().Int("batch_axis", 1) == 0;
  const int64_t batches = shape[batch_first ? 0 : 1];
  const int64_t times = shape[batch_first ? 1 : 0];
  const int64_t* lens = call.x(1).data<int64_t>();
  for (int64_t b = 0; b < batches; ++b) {
    if (lens[b] < 0 || lens[b] > times) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("ReverseSequence: sequence {} has length {}, time has {} steps", b,
                              lens[b], times));
    }
  }
  if (shape.elements() == 0) return;
  const int64_t row =
      shape.Product(2, shape.rank()) * static_cast<int64_t>(ItemSize(call.x(0).dtype()));
  const auto* from = call.x(0).data<std::byte>();
  auto* to = call.y(0).data<std::byte>();
  const auto offset = [&](int64_t b, int64_t t) {
    return (batch_first ? b * times + t : t * batches + b) * row;
  };
  ParallelFor(batches * times, 1 + 65536 / row, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / times;
      const int64_t t = i % times;
      const int64_t source = t < lens[b] ? lens[b] - 1 - t : t;
      std::memcpy(to + offset(b, t), from + offset(b, source), static_cast<size_t>(row));
    }
  });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return OpSchema{
      .name = "ReverseSequence",
      .since = since,
      .until = until,
      .inputs = {{.name = "input", .types = types, .group = 1},
                 {.name = "sequence_lens", .types = TypeBit(DType::kInt64)}},
      .outputs = {{.name = "Y", .types = types, .group = 1}},
      .attributes = {{"batch_axis", AttributeType::kInt, false, "0 or 1 (default)"},
                     {"time_axis", AttributeType::kInt, false, "0 (default) or 1"}},
      .infer = Infer,
      .cost = MoveCost,
      .samples = std::move(samples),
  };
}

WHIMBREL_REGISTER(Schema(10, 28, kAllTypesTo12,
                         {"f32:4x4 i64:4={4,3,2,1}",
                          "i32:4x4 i64:4={1,2,3,4} batch_axis=0 time_axis=1"}));
WHIMBREL_REGISTER(
    Schema(28, INT_MAX, kAllTypes,
           {"f32:5x3x2 i64:3={5,0,2}", "f32:3x5x2 i64:3={5,1,2} batch_axis=0 time_axis=1",
            "f32:1x1 i64:1={1}", "f32:0x3 i64:3={0,0,0}", "f32:3x0 i64:0", "f16:7x17 i64:17@0..7",
            "bf16:7x17 i64:7@0..17 batch_axis=0 time_axis=1", "f64:2x3x4x5 i64:3@0..2",
            "bool:5x2 i64:2={3,4}", "u8:9x1 i64:1={9}", "f32:64x32x40 i64:32@0..64"}));
WHIMBREL_REGISTER(Kernel{.op = "ReverseSequence", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
