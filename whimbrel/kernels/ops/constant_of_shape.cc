// ConstantOfShape: every element is `value`.
//
// in   input   [rank] i64, the shape; empty = scalar
// attr value   tensor of one element, default f32 0
// out  output  shape as input says, type of value
// Source: ONNX operator ConstantOfShape (9, 20, 21, 23, 24, 25).

#include <algorithm>
#include <cstring>

#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/raw_elements.h"

namespace whimbrel {
namespace {

DType ValueType(const Attributes& attrs) {
  const Tensor* value = attrs.TensorOrNull("value");
  return value == nullptr ? DType::kFloat : value->dtype();
}

void Infer(InferContext& c) {
  const Tensor* value = c.attrs().TensorOrNull("value");
  if (value != nullptr && (value->elements() != 1 || !value->has_data())) {
    c.Fail("value must have one element, has shape " + ToString(value->shape()));
  }
  const DType dtype = ValueType(c.attrs());
  if ((c.schema().outputs[0].types & TypeBit(dtype)) == 0) {
    c.Fail("value of type " + std::string(DTypeName(dtype)) + " is not taken at opset " +
           std::to_string(c.opset()));
  }
  c.SetOut(0, dtype, std::nullopt);
  const auto& length = c.in(0).dims;
  if (length && length->size() != 1) c.Fail("input must have rank 1, is " + ToString(*length));
  auto dims = c.Elements(0);
  if (!dims && length && length->front().known() && length->front().value() >= 0 &&
      length->front().value() <= kMaxRank) {
    dims = Dims(static_cast<size_t>(length->front().value()));
  }
  if (!dims) return;
  if (dims->size() > static_cast<size_t>(kMaxRank)) {
    c.Fail("a shape of " + std::to_string(dims->size()) + " dimensions; at most " +
           std::to_string(kMaxRank) + " are supported");
  }
  for (const Dim& d : *dims) {
    if (d.known() && d.value() < 0)
      c.Fail("shape " + ToString(*dims) + " has a negative dimension");
  }
  if (HoldsElements(dtype) && dims->size() <= 1) {
    const Dim count = dims->empty() ? Dim(1) : dims->front();
    if (count.known() && count.value() <= kMaxElements) {
      const int64_t element = value == nullptr ? 0 : ElementAsInt64(*value, 0);
      c.out(0).elements = Dims(static_cast<size_t>(count.value()), Dim(element));
    }
  }
  c.out(0).dims = std::move(dims);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Tensor* value = call.attrs().TensorOrNull("value");
  const DType dtype = ValueType(call.attrs());
  call.ResizeOutput(0, dtype, Shape(call.x(0).values<int64_t>()));
  DispatchItemSize(call, dtype, [&]<typename U>() {
    U element = 0;  // all zero bits are 0 in every type
    if (value != nullptr) std::memcpy(&element, value->raw(), sizeof element);
    U* y = call.y(0).data<U>();
    ParallelFor(call.y(0).elements(), 65536,
                [&](int64_t begin, int64_t end) { std::fill(y + begin, y + end, element); });
  });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema schema;
  schema.name = "ConstantOfShape";
  schema.since = since;
  schema.until = until;
  schema.inputs = {{.name = "input", .types = TypeBit(DType::kInt64)}};
  schema.outputs = {{.name = "output", .types = types}};
  schema.attributes = {{"value", AttributeType::kTensor, false, "one element; default f32 0"}};
  schema.infer = Infer;
  schema.cost = MoveCost;
  schema.samples = std::move(samples);
  return schema;
}

WHIMBREL_REGISTER(Schema(9, 20, kAllTypesTo12, {"i64:2={3,4}", "i64:1={5} value=i64:1={7}"}));
WHIMBREL_REGISTER(Schema(
    20, INT_MAX, kAllTypes,
    {"i64:2={3,16}", "i64:1={1}", "i64:0={}", "i64:2={0,8}", "i64:1={0} value=i64:1={1}",
     "i64:3={2,3,5} value=f32:1={-1.5}", "i64:2={7,17} value=f16:1={2}",
     "i64:2={7,17} value=bf16:1={2}", "i64:1={3} value=f64:1={nan}", "i64:1={3} value=i64:1={-1}",
     "i64:1={64} value=i32:1={9}", "i64:1={5} value=bool:1={1}", "i64:1={5} value=u8:1={255}",
     "i64:1={2} value=u64:1={18446744073709551615}", "i64:4={1,64,40,40} value=f32:={3}"}));
WHIMBREL_REGISTER(Kernel{.op = "ConstantOfShape", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
