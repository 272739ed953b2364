// Range: y[i] = start + i * delta, i < max(ceil((limit - start) / delta), 0)
//
// in   start, limit, delta  scalars of one type: f32 | f64 | i16 | i32 | i64, from 27 also f16 |
// bf16 attr stash_type  int, default 1 (from 27): the type of sums, which are exact here whatever
// it says out  output      [count], type of start The count of floats: the difference is rounded to
// f32 (f64 for f64), the quotient is double, as in ONNX Runtime; inference and kernel ask one
// function, so that they never differ. Source: ONNX operator Range (11, 27).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

// Beyond it Shape refuses.
constexpr int64_t kMaxCount = int64_t{1} << 58;

[[noreturn]] void ThrowCount(const std::string& what) {
  throw Error(Code::kInvalidData, "Range: " + what, "check start, limit and delta");
}

int64_t CountOf(int64_t start, int64_t limit, int64_t delta) {
  if (delta == 0) ThrowCount("delta is 0");
  // 64-bit differences overflow: -2^63 to 2^63 - 1.
  const __int128 way = static_cast<__int128>(limit) - start;
  if (way == 0 || (way < 0) != (delta < 0)) return 0;
  const __int128 count = way / delta + (way % delta != 0 ? 1 : 0);
  if (count > kMaxCount) ThrowCount("more than 2^58 elements");
  return static_cast<int64_t>(count);
}

int64_t CountOf(double start, double limit, double delta, DType dtype) {
  if (delta == 0) ThrowCount("delta is 0");
  double way = limit - start;
  if (dtype != DType::kDouble) way = static_cast<float>(way);
  const double count = std::ceil(way / delta);
  if (std::isnan(count)) ThrowCount("start, limit or delta is not finite");
  if (count > static_cast<double>(kMaxCount)) ThrowCount("more than 2^58 elements");
  return count > 0 ? static_cast<int64_t>(count) : 0;
}

int64_t CountOf(const Tensor& start, const Tensor& limit, const Tensor& delta) {
  const DType dtype = start.dtype();
  if (IsFloating(dtype)) {
    return CountOf(ElementAsDouble(start, 0), ElementAsDouble(limit, 0), ElementAsDouble(delta, 0),
                   dtype);
  }
  return CountOf(ElementAsInt64(start, 0), ElementAsInt64(limit, 0), ElementAsInt64(delta, 0));
}

Dim CountOfElements(const Dim& start, const Dim& limit, const Dim& delta) {
  if (start.known() && limit.known() && delta.known()) {
    return CountOf(start.value(), limit.value(), delta.value());
  }
  if (delta.Is(0)) ThrowCount("delta is 0");
  // A symbolic count is taken to be positive; with a negative step nothing is known.
  return delta.known() && delta.value() > 0 ? CeilDiv(limit - start, delta) : Dim();
}

void Infer(InferContext& c) {
  for (size_t i = 0; i < 3; ++i) {
    const auto& dims = c.in(i).dims;
    if (!dims) continue;
    const Dim count = ProductOf(*dims, 0, dims->size());
    if (dims->size() > 1 || (count.known() && count.value() != 1)) {
      c.Fail(std::string(c.schema().inputs[i].name) + " must be a scalar, is " + ToString(*dims));
    }
  }
  const DType dtype = c.in(0).dtype;
  c.SetOut(0, dtype, Dims{Dim()});
  const auto known = [&](size_t i) { return c.in(i).constant && c.in(i).constant->has_data(); };
  if (known(0) && known(1) && known(2)) {
    c.out(0).dims = Dims{CountOf(*c.in(0).constant, *c.in(1).constant, *c.in(2).constant)};
  }
  const auto start = SmallElements(c, 0);
  const auto limit = SmallElements(c, 1);
  const auto delta = SmallElements(c, 2);
  if (!start || !limit || !delta || start->size() != 1 || limit->size() != 1 ||
      delta->size() != 1) {
    return;
  }
  const Dim count = CountOfElements(start->front(), limit->front(), delta->front());
  c.out(0).dims = Dims{count};
  if (!count.known() || count.value() < 0 || count.value() > kMaxElements) return;
  Dims elements;
  for (int64_t i = 0; i < count.value(); ++i) {
    elements.push_back(FitElement(start->front() + Dim(i) * delta->front(), dtype));
  }
  c.out(0).elements = std::move(elements);
}

constexpr TypeMask kRangeTypes = kFloatTypes | TypeBit(DType::kInt16) | kIndexTypes;

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const DType dtype = call.x(0).dtype();
  call.ResizeOutput(0, dtype, Shape{CountOf(call.x(0), call.x(1), call.x(2))});
  DispatchReference<kRangeTypes>(call, dtype, [&]<typename T>() {
    using W = WideOf<T>;
    const W start = Widen(*call.x(0).data<T>());
    const W delta = Widen(*call.x(2).data<T>());
    T* y = call.y(0).data<T>();
    ParallelFor(call.y(0).elements(), 16384, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if constexpr (std::is_integral_v<W>) {
          y[i] = WrapAdd(start, WrapMul(static_cast<W>(i), delta));
        } else {
          y[i] = Narrow<T>(start + static_cast<W>(i) * delta);
        }
      }
    });
  });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema schema = MakeSchema({.name = "Range",
                                .since = since,
                                .until = until,
                                .types = types,
                                .inputs = {"start", "limit", "delta"},
                                .output = "output",
                                .infer = Infer,
                                .samples = std::move(samples)});
  if (since >= 27) {
    schema.attributes = {
        {"stash_type", AttributeType::kInt, false, "default 1; sums are exact here"}};
  }
  return schema;
}

WHIMBREL_REGISTER(Schema(
    11, 27, kRangeTypes & ~(TypeBit(DType::kFloat16) | TypeBit(DType::kBFloat16)),
    {"i64:={0} i64:={10} i64:={3}", "i64:={10} i64:={4} i64:={-2}", "i64:={3} i64:={9} i64:={3}",
     "i64:={5} i64:={5} i64:={1}", "i64:={5} i64:={9} i64:={-1}", "i64:={0} i64:={1} i64:={9}",
     "f32:={0} f32:={1} f32:={0.1}", "f32:={0.1} f32:={0.7} f32:={0.2}",
     "f32:={1} f32:={0} f32:={-0.3}", "f64:={0} f64:={1} f64:={0.1}",
     "i32:={0} i32:={100} i32:={7}", "i16:={-3} i16:={3} i16:={1}", "i64:1={0} i64:1={4} i64:1={1}",
     "f32:={0} f32:={100000} f32:={1}",
     "i64:={-9223372036854775808} i64:={9223372036854775807} i64:={9223372036854775807}"}));
WHIMBREL_REGISTER(Schema(27, INT_MAX, kRangeTypes,
                         {"f16:={0} f16:={2050} f16:={1}", "bf16:={0} bf16:={9} bf16:={0.5}",
                          "f32:={0} f32:={4} f32:={1} stash_type=1",
                          "i64:={0} i64:={5} i64:={1}"}));
WHIMBREL_REGISTER(Kernel{.op = "Range", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
