// Where: y = condition ? x : y, all three broadcast.
//
// in   condition  bool
//      X, Y       any type, one type
// out  output     type of X
// Source: ONNX operator Where (9, 16).

#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/raw_elements.h"

namespace whimbrel {
namespace {

// Elements that are known: by a known condition, or because both sides agree.
std::optional<Dims> KnownElements(InferContext& c) {
  const auto condition = SmallElements(c, 0);
  const auto x = SmallElements(c, 1);
  const auto y = SmallElements(c, 2);
  const auto& dims = c.out(0).dims;
  if (!x || !y || !dims || dims->size() > 1) return std::nullopt;
  const Dim count = dims->empty() ? Dim(1) : dims->front();
  if (!count.known() || count.value() < 0 || count.value() > kMaxElements) return std::nullopt;
  const auto n = static_cast<size_t>(count.value());
  const auto fits = [n](const Dims& d) { return d.size() == 1 || d.size() == n; };
  if (!fits(*x) || !fits(*y) || (condition && !fits(*condition))) return std::nullopt;
  Dims result(n);
  for (size_t i = 0; i < n; ++i) {
    const Dim& a = (*x)[x->size() == 1 ? 0 : i];
    const Dim& b = (*y)[y->size() == 1 ? 0 : i];
    const Dim choice = condition ? (*condition)[condition->size() == 1 ? 0 : i] : Dim();
    if (choice.known()) {
      result[i] = choice.value() != 0 ? a : b;
    } else if (a.Same(b)) {
      result[i] = a;
    }
  }
  return result;
}

void Infer(InferContext& c) {
  c.SetOut(0, c.in(1).dtype, std::nullopt);
  if (c.in(1).dims && c.in(2).dims && c.in(0).dims) {
    auto dims = BroadcastDims(*c.in(1).dims, *c.in(2).dims);
    if (dims) dims = BroadcastDims(*c.in(0).dims, *dims);
    if (!dims) {
      c.Fail("condition " + ToString(*c.in(0).dims) + ", X " + ToString(*c.in(1).dims) + " and Y " +
                 ToString(*c.in(2).dims) + " do not broadcast",
             "dimensions must be equal or 1, aligned at the right");
    }
    c.out(0).dims = std::move(dims);
  }
  if (HoldsElements(c.out(0).dtype)) c.out(0).elements = KnownElements(c);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  DispatchItemSize(call, call.x(1).dtype(), [&]<typename U>() {
    const bool* condition = call.x(0).data<bool>();
    const U* x = call.x(1).data<U>();
    const U* y = call.x(2).data<U>();
    U* out = call.y(0).data<U>();
    const BroadcastWalk<3> walk(call.y(0).shape(),
                                {&call.x(0).shape(), &call.x(1).shape(), &call.x(2).shape()});
    ParallelFor(call.y(0).elements(), 16384, [&](int64_t begin, int64_t end) {
      walk.Run(begin, end, [&](int64_t i, const std::array<int64_t, 3>& at) {
        out[i] = condition[at[0]] ? x[at[1]] : y[at[2]];
      });
    });
  });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema schema;
  schema.name = "Where";
  schema.since = since;
  schema.until = until;
  schema.inputs = {{.name = "condition", .types = kBoolType},
                   {.name = "X", .types = types, .group = 1},
                   {.name = "Y", .types = types, .group = 1}};
  schema.outputs = {{.name = "output", .types = types, .group = 1}};
  schema.infer = Infer;
  schema.cost = MoveCost;
  schema.samples = std::move(samples);
  return schema;
}

WHIMBREL_REGISTER(Schema(9, 16, kAllTypesTo12, {"bool:3x4 f32:3x4 f32:3x4", "bool:4 i64:4 i64:1"}));
WHIMBREL_REGISTER(Schema(
    16, INT_MAX, kAllTypes,
    {"bool:3x16 f32:3x16 f32:3x16", "bool:2x1 f32:3 f32:1x2x1",
     "bool: f32:4 f32:", "bool:0x3 f32:3 f32:1", "bool:1 f32:1 f32:1", "bool:7x17 f16:17 f16:7x1",
     "bool:5x9 bf16:5x1 bf16:", "bool:3 f64:3 f64:3", "bool:3x1 i32:5 i32:1", "bool:9 i64:9 i64:9",
     "bool:9 u8:9 u8:9", "bool:9 bool:9 bool:9", "bool:9 i8:9 i8:9", "bool:9 u16:9 u16:1",
     "bool:1x1x40x40 f32:1x64x40x40 f32:1", "bool:3={1,0,1} i64:3={4,5,6} i64:1={9}",
     "bool:4 f32:4={nan,inf,-inf,-0} f32:4"}));
WHIMBREL_REGISTER(Kernel{.op = "Where", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
