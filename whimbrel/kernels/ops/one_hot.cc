// OneHot: y[i.., d, j..] = values[1] where indices[i.., j..] is d, else values[0].
//
// in   indices  numeric; floats are cut; negative: from the end; outside [-depth, depth): no place
//      depth    numeric scalar or [1]: the new dim
//      values   [2], any type: off and on
// attr axis     int, default -1: where the new dim stands, in [-rank - 1, rank]
// out  output   type of values
// Source: ONNX operator OneHot (9, 11, 28).

#include <limits>

#include "whimbrel/kernels/ops/axes.h"
#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/float_to_int.h"
#include "whimbrel/kernels/ops/raw_elements.h"

namespace whimbrel {
namespace {

void CheckOneOf(const InferContext& c, size_t i, int64_t count) {
  const auto& dims = c.in(i).dims;
  if (!dims) return;
  const Dim elements = ProductOf(*dims, 0, dims->size());
  if (dims->size() > 1 || (elements.known() && elements.value() != count)) {
    c.Fail(std::string(c.schema().inputs[i].name) + " must have " + std::to_string(count) +
           " elements, is " + ToString(*dims));
  }
}

Dim InferDepth(const InferContext& c) {
  const ValueInfo& depth = c.in(1);
  Dim dim;
  if (depth.constant && depth.constant->has_data() && depth.constant->elements() == 1) {
    dim = ElementAsInt64(*depth.constant, 0);
  } else if (const auto elements = SmallElements(c, 1); elements && elements->size() == 1) {
    dim = elements->front();
  }
  if (dim.known() && dim.value() < 0) c.Fail("depth is " + std::to_string(dim.value()));
  return dim;
}

void Infer(InferContext& c) {
  CheckOneOf(c, 1, 1);
  CheckOneOf(c, 2, 2);
  const Dim depth = InferDepth(c);
  const auto& in = c.in(0).dims;
  if (!in) return c.SetOut(0, c.in(2).dtype, std::nullopt);
  const int axis =
      NormalizeAxis(c.attrs().Int("axis", -1), static_cast<int>(in->size()) + 1, "OneHot");
  Dims out = *in;
  out.insert(out.begin() + axis, depth);
  c.SetOut(0, c.in(2).dtype, std::move(out));
}

template <typename T>
int64_t IndexOf(T x) {
  if constexpr (std::is_floating_point_v<WideOf<T>>) {
    return FloatToInt<int64_t>(static_cast<double>(x));
  } else {
    return std::in_range<int64_t>(x) ? static_cast<int64_t>(x)
                                     : std::numeric_limits<int64_t>::max();
  }
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& in = call.x(0).shape();
  const int axis = NormalizeAxis(call.attrs().Int("axis", -1), in.rank() + 1, "OneHot");
  const int64_t depth = ElementAsInt64(call.x(1), 0);
  if (depth < 0) throw Error(Code::kInvalidData, "OneHot: depth is " + std::to_string(depth));
  std::array<int64_t, kMaxRank + 1> dims{};
  for (int d = 0; d <= in.rank(); ++d) {
    dims[static_cast<size_t>(d)] = d < axis ? in[d] : (d == axis ? depth : in[d - 1]);
  }
  const Shape out(std::span<const int64_t>(dims.data(), static_cast<size_t>(in.rank()) + 1));
  const DType dtype = call.x(2).dtype();
  call.ResizeOutput(0, dtype, out);
  if (out.elements() == 0) return;
  const int64_t inner = in.Product(axis, in.rank());
  DispatchItemSize(call, dtype, [&]<typename U>() {
    const U* values = call.x(2).data<U>();
    U* y = call.y(0).data<U>();
    DispatchReference<kNumericTypes>(call, call.x(0).dtype(), [&]<typename T>() {
      const T* indices = call.x(0).data<T>();
      ParallelFor(in.elements(), 1 + 16384 / depth, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          U* row = y + i / inner * depth * inner + i % inner;
          for (int64_t d = 0; d < depth; ++d) row[d * inner] = values[0];
          int64_t at = IndexOf(indices[i]);
          if (at < 0 && at >= -depth) at += depth;
          if (at >= 0 && at < depth) row[at * inner] = values[1];
        }
      });
    });
  });
}

OpSchema Schema(int since, int until, TypeMask values, std::vector<std::string_view> samples) {
  return OpSchema{
      .name = "OneHot",
      .since = since,
      .until = until,
      .inputs = {{.name = "indices", .types = kNumericTypesTo12},
                 {.name = "depth", .types = kNumericTypesTo12},
                 {.name = "values", .types = values, .group = 1}},
      .outputs = {{.name = "output", .types = values, .group = 1}},
      .attributes = {{"axis", AttributeType::kInt, false, "default -1; in [-rank - 1, rank]"}},
      .infer = Infer,
      .cost = MoveCost,
      .samples = std::move(samples),
  };
}

WHIMBREL_REGISTER(Schema(9, 28, kAllTypesTo12,
                         {"i64:3 i64:={5} f32:2={0,1}", "f32:2x3@0..4 f32:1={4} i32:2={2,5} axis=1",
                          "i64:4={-1,0,3,-5} i64:={3} f32:2={0,1} opset=11"}));
WHIMBREL_REGISTER(Schema(
    28, INT_MAX, kAllTypes,
    {"i64:3x4 i64:={10} f32:2={0,1}", "i64:1 i64:={1} f32:2", "i64: i64:={3} f32:2={0,1}",
     "i64:0x3 i64:={4} f32:2", "i64:3 i64:={0} f32:2", "i64:2x3@-5..5 i32:1={4} f32:2 axis=0",
     "i32:2x3 u8:={7} f16:2={-1,1} axis=-2", "u8:7 f32:={6.9} bf16:2",
     "f32:5={0.9,-0.9,1.5,-1,nan} i64:={2} bool:2={0,1}", "f16:3@0..3 f16:={3} i64:2={9,4}",
     "u64:3={18446744073709551615,1,0} i64:={2} u8:2={0,1}", "f64:3 f64:={4} f64:2={0,1}",
     "i64:3 i64: f32:2", "i64:4096@0..79 i64:={80} f32:2={0,1}"}));
WHIMBREL_REGISTER(Kernel{.op = "OneHot", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
