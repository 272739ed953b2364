// Constant: the value held by one attribute.
//
// attr value                     tensor
//      value_float, value_int    scalar of f32 or i64 (from 12)
//      value_floats, value_ints  vector of f32 or i64 (from 12)
//      value_string, value_strings, sparse_value  known and refused
// out  output  as the attribute says
// Source: ONNX operator Constant (1, 9, 11, 12, 13, 19, 21, 23, 24, 25).

#include <cstring>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

// Type, shape and bytes of the value; `data` lies in the attributes or, for scalars, in this
// object.
struct Value {
  DType dtype = DType::kUndefined;
  Shape shape;
  const void* data = nullptr;
  float float_scalar = 0;
  int64_t int_scalar = 0;
};

// Fills `v` from the one attribute that is there.
void ReadValue(const Attributes& attrs, Value& v) {
  if (attrs.all().size() != 1) {
    throw Error(Code::kInvalidData, "Constant: exactly one value attribute is needed, there are " +
                                        std::to_string(attrs.all().size()));
  }
  const std::string& name = attrs.all().begin()->first;
  if (name == "value") {
    const Tensor& t = *attrs.TensorOrNull(name);
    v.dtype = t.dtype();
    v.shape = t.shape();
    v.data = t.raw();
  } else if (name == "value_float") {
    v.dtype = DType::kFloat;
    v.float_scalar = static_cast<float>(attrs.Float(name, 0));
    v.data = &v.float_scalar;
  } else if (name == "value_int") {
    v.dtype = DType::kInt64;
    v.int_scalar = attrs.Int(name, 0);
    v.data = &v.int_scalar;
  } else if (name == "value_floats") {
    v.dtype = DType::kFloat;
    v.shape = Shape{static_cast<int64_t>(attrs.Floats(name).size())};
    v.data = attrs.Floats(name).data();
  } else if (name == "value_ints") {
    v.dtype = DType::kInt64;
    v.shape = Shape{static_cast<int64_t>(attrs.Ints(name).size())};
    v.data = attrs.Ints(name).data();
  } else {
    throw Error(Code::kUnsupported, "Constant: attribute " + name + " is not supported",
                name == "sparse_value" ? "store the constant as a dense tensor"
                                       : "tensors of strings have no kernels here");
  }
}

void CopyValue(const Value& v, Tensor& out) {
  if (out.bytes() != 0) std::memcpy(out.raw(), v.data, out.bytes());
}

void Infer(InferContext& c) {
  Value v;
  ReadValue(c.attrs(), v);
  if ((c.schema().outputs[0].types & TypeBit(v.dtype)) == 0) {
    c.Fail("a value of type " + std::string(DTypeName(v.dtype)) + " is not taken at opset " +
           std::to_string(c.opset()));
  }
  if (v.data == nullptr && v.shape.elements() != 0) c.Fail("the value has no data");
  c.SetOut(0, v.dtype, ToDims(v.shape));
  const Tensor* tensor = c.attrs().TensorOrNull("value");
  Tensor constant = tensor != nullptr ? *tensor : Tensor::Host(v.dtype, v.shape);
  if (tensor == nullptr) CopyValue(v, constant);
  if (v.shape.rank() <= 1 && constant.elements() <= kMaxElements && HoldsElements(v.dtype)) {
    c.out(0).elements.emplace();
    for (int64_t x : IntegerValues(constant)) c.out(0).elements->emplace_back(x);
  }
  c.out(0).constant = std::make_shared<const Tensor>(std::move(constant));
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  Value v;
  ReadValue(call.attrs(), v);
  CopyValue(v, call.y(0));
}

OpSchema Schema(int since, int until, std::vector<std::string_view> samples) {
  OpSchema schema;
  schema.name = "Constant";
  schema.since = since;
  schema.until = until;
  // Opset 1 names float types only, yet exporters of opset 7 and 8 write integers too.
  schema.outputs = {{.name = "output", .types = since < 13 ? kAllTypesTo12 : kAllTypes}};
  schema.attributes = {{"value", AttributeType::kTensor, since < 11, "the value"}};
  if (since >= 11)
    schema.attributes.push_back({"sparse_value", AttributeType::kTensor, false, "refused"});
  if (since >= 12) {
    schema.attributes.push_back({"value_float", AttributeType::kFloat, false, "scalar f32"});
    schema.attributes.push_back({"value_floats", AttributeType::kFloats, false, "vector f32"});
    schema.attributes.push_back({"value_int", AttributeType::kInt, false, "scalar i64"});
    schema.attributes.push_back({"value_ints", AttributeType::kInts, false, "vector i64"});
    schema.attributes.push_back({"value_string", AttributeType::kString, false, "refused"});
    schema.attributes.push_back({"value_strings", AttributeType::kStrings, false, "refused"});
  }
  schema.infer = Infer;
  schema.cost = MoveCost;
  schema.samples = std::move(samples);
  return schema;
}

WHIMBREL_REGISTER(Schema(1, 11, {"value=f32:3={1,2,3} opset=7", "value=i64:1={5} opset=9"}));
WHIMBREL_REGISTER(Schema(11, 12, {"value=f32:3={1,2,3}", "value=f16:2={1,nan}"}));
WHIMBREL_REGISTER(Schema(12, 13, {"value=f32:2x2={1,2,3,4}", "value_int=5", "value_floats=1,2.5"}));
WHIMBREL_REGISTER(Schema(13, INT_MAX,
                         {"value=f32:2x3={1,2,3,4,5,6}", "value=f32:={7}", "value=f32:0={}",
                          "value=f16:3={1,2,nan}", "value=bf16:3={1,2,-0}", "value=f64:1={0.1}",
                          "value=i64:2={-1,9223372036854775807}", "value=i32:={4}",
                          "value=bool:2={1,0}", "value=u8:2={0,255}", "value_float=0.1",
                          "value_floats=1,2.5,-3", "value_int=-7", "value_ints=1,2,3",
                          "value_ints=4"}));
WHIMBREL_REGISTER(Kernel{.op = "Constant", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
