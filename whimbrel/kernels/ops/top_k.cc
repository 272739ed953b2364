// TopK: the k largest (or smallest) elements along one axis, in order, and where they were.
//
// in   X        f32 | f64 | f16, from 11 integers, from 24 bf16
//      K        i64 [1], from 10
// attr k        int, before 10
//      axis     int, default -1
//      largest  int, default 1, from 11
//      sorted   int, default 1, from 11; with 0 any order is right, and they are sorted all the
//      same
// out  Values   like X with k on the axis
//      Indices  i64, the same shape
// Of equal elements the lower index comes first. NaN counts as the largest.
// Source: ONNX operator TopK (1, 10, 11, 24).

#include <numeric>

#include <fmt/format.h>

#include "whimbrel/kernels/ops/axes.h"
#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/total_order.h"

namespace whimbrel {
namespace {

bool TakesInput(const OpSchema& schema) {
  return schema.inputs.size() > 1;
}

Dim InferCount(const InferContext& c) {
  if (!TakesInput(c.schema())) return c.attrs().Int("k", 0);
  const auto& dims = c.in(1).dims;
  if (dims &&
      (dims->size() > 1 || (dims->size() == 1 && dims->front().known() && !dims->front().Is(1)))) {
    c.Fail("K must have one element, is " + ToString(*dims));
  }
  const auto elements = SmallElements(c, 1);
  return elements && elements->size() == 1 ? elements->front() : Dim();
}

void Infer(InferContext& c) {
  const Dim k = InferCount(c);
  if (k.known() && k.value() < 0) c.Fail(fmt::format("k is {}", k.value()));
  std::optional<Dims> out = c.in(0).dims;
  if (out) {
    if (out->empty()) c.Fail("X is a scalar", "X needs an axis to choose from");
    const int axis =
        NormalizeAxis(c.attrs().Int("axis", -1), static_cast<int>(out->size()), "TopK");
    Dim& dim = (*out)[static_cast<size_t>(axis)];
    if (k.known() && dim.known() && k.value() > dim.value()) {
      c.Fail(fmt::format("k is {}, axis {} of X {} has {} elements", k.value(), axis,
                         ToString(*c.in(0).dims), dim.value()),
             "ask for at most as many as there are");
    }
    dim = k;
  }
  c.SetOut(0, c.in(0).dtype, out);
  c.SetOut(1, DType::kInt64, std::move(out));
}

int64_t ReadCount(const OpCall& call, int64_t length) {
  const int64_t k =
      TakesInput(*call.schema) ? ElementAsInt64(call.x(1), 0) : call.attrs().Int("k", 0);
  if (k < 0 || k > length) {
    throw Error(Code::kInvalidData,
                fmt::format("TopK: k is {}, the axis has {} elements", k, length),
                "ask for at most as many as there are");
  }
  return k;
}

// The order of each row: an index for each element of X.
size_t Workspace(const OpCall& call) {
  return static_cast<size_t>(call.x(0).elements()) * sizeof(int64_t);
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  const Shape& in = call.x(0).shape();
  const int axis = NormalizeAxis(call.attrs().Int("axis", -1), in.rank(), "TopK");
  const int64_t length = in[axis];
  const int64_t k = ReadCount(call, length);
  const bool largest = call.attrs().Int("largest", 1) != 0;
  Shape out = in;
  out.set(axis, k);
  call.ResizeOutput(0, call.x(0).dtype(), out);
  call.ResizeOutput(1, DType::kInt64, out);
  if (out.elements() == 0) return;
  auto* order = static_cast<int64_t*>(static_cast<void*>(workspace.data()));
  const int64_t inner = in.Product(axis + 1, in.rank());
  DispatchReference<kNumericTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    T* values = call.has_out(0) ? call.y(0).data<T>() : nullptr;
    int64_t* indices = call.has_out(1) ? call.y(1).data<int64_t>() : nullptr;
    ParallelFor(in.elements() / length, 1 + 4096 / length, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* from = x + row / inner * length * inner + row % inner;
        int64_t* places = order + row * length;
        std::iota(places, places + length, int64_t{0});
        std::partial_sort(places, places + k, places + length, [&](int64_t a, int64_t b) {
          const int compared = CompareTotal(from[a * inner], from[b * inner]);
          return compared != 0 ? (compared > 0) == largest : a < b;
        });
        const int64_t to = row / inner * k * inner + row % inner;
        for (int64_t i = 0; i < k; ++i) {
          if (values != nullptr) values[to + i * inner] = from[places[i] * inner];
          if (indices != nullptr) indices[to + i * inner] = places[i];
        }
      }
    });
  });
}

// log2(length) comparisons an element.
Cost TopKCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  const Shape& in = call.x(0).shape();
  const int axis = NormalizeAxis(call.attrs().Int("axis", -1), in.rank(), "TopK");
  cost.flops = static_cast<double>(in.elements()) *
               std::max(1.0, std::log2(static_cast<double>(in[axis]) + 1));
  return cost;
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema schema{
      .name = "TopK",
      .since = since,
      .until = until,
      .inputs = {{.name = "X", .types = types, .group = 1}},
      .outputs = {{.name = "Values", .types = types, .group = 1},
                  {.name = "Indices", .types = TypeBit(DType::kInt64)}},
      .attributes = {{"axis", AttributeType::kInt, false, "default -1"}},
      .infer = Infer,
      .cost = TopKCost,
      .samples = std::move(samples),
  };
  if (since < 10) {
    schema.attributes.push_back({"k", AttributeType::kInt, true, "how many"});
  } else {
    schema.inputs.push_back({.name = "K", .types = TypeBit(DType::kInt64)});
  }
  if (since >= 11) {
    schema.attributes.push_back({"largest", AttributeType::kInt, false, "default 1; 0: smallest"});
    schema.attributes.push_back({"sorted", AttributeType::kInt, false, "default 1; 0: any order"});
  }
  return schema;
}

WHIMBREL_REGISTER(Schema(1, 10, kFloatTypesTo12, {"f32:3x4 k=2 opset=7", "f16:5x3 k=3 axis=0"}));
WHIMBREL_REGISTER(Schema(10, 11, kFloatTypesTo12,
                         {"f32:3x4 i64:1={2}", "f64:5x3 i64:1={1} axis=0"}));
WHIMBREL_REGISTER(Schema(11, 24, kNumericTypesTo12,
                         {"f32:3x4 i64:1={3} largest=0", "u8:4={3,0,255,0} i64:1={2} largest=0",
                          "i32:5x3@0..3 i64:1={2} axis=0 sorted=0"}));
WHIMBREL_REGISTER(Schema(24, INT_MAX, kNumericTypes,
                         {"f32:3x16 i64:1={5}", "f32:1 i64:1={1}", "f32:4={0,1,2,2} i64:1={1}",
                          "f32:5={1,2,5,4,5} i64:1={3}", "f32:0x8 i64:1={3}", "f32:3x8 i64:1={0}",
                          "f32:3x8 i64:1={8}", "f32:3x4x5 i64:1={2} axis=1 largest=0",
                          "f32:3x9 i64:1@1..2", "f32:4={0,-0,0,-0} i64:1={4}",
                          "f16:7x17@-1..1 i64:1={4}", "bf16:7x17@-1..1 i64:1={4} axis=0",
                          "f64:3x5 i64:1={2}", "i64:30@0..5 i64:1={9}",
                          "u64:3={18446744073709551615,1,18446744073709551614} i64:1={2}",
                          "i8:3={-128,127,0} i64:1={3} largest=0", "f32:8 i64:1={4} nan=1",
                          "f32:8 i64:1={4} largest=0 nan=1", "f32:1x8400 i64:1={300} sorted=0"}));
WHIMBREL_REGISTER(Kernel{.op = "TopK", .name = "reference", .workspace = Workspace, .run = Run});

}  // namespace
}  // namespace whimbrel
