// Unique: the different elements of x, or the different slices along one axis.
//
// in   X       any type
// attr axis    int, optional; absent: X is flattened
//      sorted  int, default 1: ascending; 0: in order of first occurrence
// out  Y        the different ones
//      indices  i64 [count], where each occurs first; optional
//      inverse_indices  i64 [length], for each of X its place in Y; optional
//      counts   i64 [count], how often each occurs; optional
// Slices compare element by element. NaN equals NaN and comes last; both zeros are equal.
// Source: ONNX operator Unique (11, 28).

#include <algorithm>
#include <numeric>

#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/total_order.h"

namespace whimbrel {
namespace {

// X as `length` slices of `outer` rows of `inner` elements; row r of slice s is at
// (r * length + s) * inner.
struct Slices {
  int64_t outer = 1, length = 0, inner = 1;
  int axis = -1;  // -1: flattened
};

Slices SlicesOf(const OpCall& call) {
  const Shape& shape = call.x(0).shape();
  if (!call.attrs().Has("axis")) return {1, shape.elements(), 1, -1};
  const int axis = NormalizeAxis(call.attrs().Int("axis", 0), shape.rank(), "Unique");
  return {shape.Product(0, axis), shape[axis], shape.Product(axis + 1, shape.rank()), axis};
}

void Infer(InferContext& c) {
  const auto& in = c.in(0).dims;
  const int64_t sorted = c.attrs().Int("sorted", 1);
  if (sorted != 0 && sorted != 1) c.Fail("sorted is " + std::to_string(sorted), "it is 0 or 1");
  Dim length;
  if (!c.attrs().Has("axis")) {
    if (in) length = ProductOf(*in, 0, in->size());
    c.SetOut(0, c.in(0).dtype, Dims{Dim()});
  } else if (in) {
    const int axis =
        NormalizeAxis(c.attrs().Int("axis", 0), static_cast<int>(in->size()), "Unique");
    Dims out = *in;
    length = out[static_cast<size_t>(axis)];
    out[static_cast<size_t>(axis)] = Dim();
    c.SetOut(0, c.in(0).dtype, std::move(out));
  } else {
    c.SetOut(0, c.in(0).dtype, std::nullopt);
  }
  c.SetOut(1, DType::kInt64, Dims{Dim()});
  c.SetOut(2, DType::kInt64, Dims{length});
  c.SetOut(3, DType::kInt64, Dims{Dim()});
}

// Four lists of one entry a slice.
size_t Workspace(const OpCall& call) {
  return static_cast<size_t>(SlicesOf(call).length) * 4 * sizeof(int64_t);
}

struct Groups {
  int64_t count = 0;
  int64_t* order = nullptr;  // slices, sorted; of equal ones the first occurrence leads
  int64_t* group = nullptr;  // of each slice
  int64_t* first = nullptr;  // of each group: its first slice
  int64_t* place = nullptr;  // of each group: where it stands in Y
};

template <typename T>
int CompareSlices(const T* x, const Slices& s, int64_t a, int64_t b) {
  for (int64_t row = 0; row < s.outer; ++row) {
    for (int64_t i = 0; i < s.inner; ++i) {
      const int compared = CompareTotal(x[(row * s.length + a) * s.inner + i],
                                        x[(row * s.length + b) * s.inner + i]);
      if (compared != 0) return compared;
    }
  }
  return 0;
}

template <typename T>
void FindGroups(const T* x, const Slices& s, bool sorted, Groups& g) {
  std::iota(g.order, g.order + s.length, int64_t{0});
  std::sort(g.order, g.order + s.length, [&](int64_t a, int64_t b) {
    const int compared = CompareSlices(x, s, a, b);
    return compared != 0 ? compared < 0 : a < b;
  });
  for (int64_t i = 0; i < s.length; ++i) {
    if (i == 0 || CompareSlices(x, s, g.order[i - 1], g.order[i]) != 0) {
      g.first[g.count++] = g.order[i];
    }
    g.group[g.order[i]] = g.count - 1;
  }
  // Groups are sorted now; by first occurrence their places differ. order is free again.
  std::iota(g.order, g.order + g.count, int64_t{0});
  if (!sorted) {
    std::sort(g.order, g.order + g.count,
              [&](int64_t a, int64_t b) { return g.first[a] < g.first[b]; });
  }
  for (int64_t i = 0; i < g.count; ++i) g.place[g.order[i]] = i;
}

void WriteIndices(const OpCall& call, const Slices& s, const Groups& g) {
  call.ResizeOutput(1, DType::kInt64, Shape{g.count});
  call.ResizeOutput(2, DType::kInt64, Shape{s.length});
  call.ResizeOutput(3, DType::kInt64, Shape{g.count});
  if (call.has_out(1)) {
    for (int64_t i = 0; i < g.count; ++i) call.y(1).data<int64_t>()[g.place[i]] = g.first[i];
  }
  if (call.has_out(2)) {
    for (int64_t i = 0; i < s.length; ++i) call.y(2).data<int64_t>()[i] = g.place[g.group[i]];
  }
  if (call.has_out(3)) {
    int64_t* counts = call.y(3).data<int64_t>();
    std::fill(counts, counts + g.count, int64_t{0});
    for (int64_t i = 0; i < s.length; ++i) ++counts[g.place[g.group[i]]];
  }
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  const Slices s = SlicesOf(call);
  const bool sorted = call.attrs().Int("sorted", 1) != 0;
  auto* scratch = static_cast<int64_t*>(static_cast<void*>(workspace.data()));
  Groups g{0, scratch, scratch + s.length, scratch + 2 * s.length, scratch + 3 * s.length};
  DispatchReference<kAllTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    FindGroups(x, s, sorted, g);
    Shape out{g.count};
    if (s.axis >= 0) {
      out = call.x(0).shape();
      out.set(s.axis, g.count);
    }
    call.ResizeOutput(0, call.x(0).dtype(), out);
    if (!call.has_out(0)) return;
    T* y = call.y(0).data<T>();
    for (int64_t row = 0; row < s.outer; ++row) {
      for (int64_t i = 0; i < g.count; ++i) {
        const T* from = x + (row * s.length + g.first[i]) * s.inner;
        std::copy(from, from + s.inner, y + (row * g.count + g.place[i]) * s.inner);
      }
    }
  });
  WriteIndices(call, s, g);
}

// Sorting: log2(length) comparisons an element.
Cost UniqueCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  const auto count = static_cast<double>(call.x(0).elements());
  cost.flops = count * std::max(1.0, std::log2(count + 1));
  return cost;
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  const TypeMask index = TypeBit(DType::kInt64);
  return OpSchema{
      .name = "Unique",
      .since = since,
      .until = until,
      .inputs = {{.name = "X", .types = types, .group = 1}},
      .outputs = {{.name = "Y", .types = types, .group = 1},
                  {.name = "indices", .types = index, .optional = true},
                  {.name = "inverse_indices", .types = index, .optional = true},
                  {.name = "counts", .types = index, .optional = true}},
      .attributes = {{"axis", AttributeType::kInt, false, "absent: X is flattened"},
                     {"sorted", AttributeType::kInt, false, "default 1: ascending"}},
      .infer = Infer,
      .cost = UniqueCost,
      .samples = std::move(samples),
  };
}

WHIMBREL_REGISTER(Schema(11, 28, kAllTypesTo12,
                         {"f32:6={2,1,1,3,4,3} outputs=4 sorted=0",
                          "i32:3x2@0..1 outputs=4 axis=0"}));
WHIMBREL_REGISTER(Schema(
    28, INT_MAX, kAllTypes,
    {"i64:3x16@0..9 outputs=4", "i64:3x16@0..9 outputs=4 sorted=0", "f32:1 outputs=4",
     "f32: outputs=4", "f32:0x8 outputs=4", "f32:3x0 axis=1 outputs=4", "f32:3x0 axis=0 outputs=4",
     "u8:4x6x2@0..1 axis=1 outputs=4", "u8:4x6x2@0..1 axis=-1 sorted=0 outputs=4",
     "f32:4={0,-0,nan,nan} outputs=4", "f32:9 outputs=1", "f16:7x17@0..0.1 outputs=2",
     "bf16:7x17@0..1 outputs=3", "f64:3x5 outputs=4", "bool:9 outputs=4", "f32:8 outputs=4 nan=1",
     "u64:2={18446744073709551615,1} outputs=4", "i32:40000@0..999 outputs=4"}));
WHIMBREL_REGISTER(Kernel{.op = "Unique", .name = "reference", .workspace = Workspace, .run = Run});

}  // namespace
}  // namespace whimbrel
