// Cast: y = x in another type; floats are rounded once, float to integer is cut, anything not 0 is
// true.
//
// in   input  any type
// attr to        int, an ONNX type number
//      saturate  int, for 8-bit float targets only, which are not taken here
//      round_mode  string, likewise
// out  output  like input, in type `to`
// Float to integer beyond its range is undefined in ONNX: see float_to_int.h. Integers lose high
// bits. Source: ONNX operator Cast (6, 9, 13, 19, 21, 23, 24, 25, 28).

#include "whimbrel/kernels/ops/convert.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  const int64_t to = c.attrs().Int("to", 0);
  const auto dtype = to > 0 && to < 32 ? static_cast<DType>(to) : DType::kUndefined;
  if ((c.schema().outputs[0].types & TypeBit(dtype)) == 0 || dtype == DType::kUndefined) {
    throw Error(Code::kUnsupported,
                "Cast: target type " + std::to_string(to) +
                    (dtype == DType::kUndefined ? "" : " (" + std::string(DTypeName(dtype)) + ")") +
                    " is not taken at opset " + std::to_string(c.opset()),
                "numbers are those of onnx.TensorProto.DataType; strings and types of 8 bits or "
                "less other than int8, uint8 and bool are left out");
  }
  InferConversion(c, dtype);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  ConvertReference(call);
}

OpSchema Schema(int since, int until, std::vector<std::string_view> samples) {
  const TypeMask types = since < 13 ? kAllTypesTo12 : kAllTypes;
  OpSchema schema = MakeSchema({.name = "Cast",
                                .since = since,
                                .until = until,
                                .types = types,
                                .out_types = types,
                                .inputs = {"input"},
                                .output = "output",
                                .infer = Infer,
                                .cost = MoveCost,
                                .samples = std::move(samples)});
  schema.attributes = {{"to", AttributeType::kInt, true, "ONNX type number"}};
  if (since >= 19) {
    schema.attributes.push_back(
        {"saturate", AttributeType::kInt, false, "default 1; matters for 8-bit floats only"});
  }
  if (since >= 24) {
    schema.attributes.push_back(
        {"round_mode", AttributeType::kString, false, "default up; matters for float8e8m0 only"});
  }
  return schema;
}

WHIMBREL_REGISTER(Schema(6, 13,
                         {"f32:3x4 to=7", "f16:5 to=1", "bool:4 to=1", "f32:4 to=6 opset=9"}));
WHIMBREL_REGISTER(Schema(13, 19, {"f32:3x4 to=16", "bf16:5 to=1", "i64:4 to=6"}));
WHIMBREL_REGISTER(Schema(19, 24, {"f32:3x4 to=10 saturate=0", "u8:5 to=1 opset=21"}));
WHIMBREL_REGISTER(Schema(24, INT_MAX,
                         {"f32:3x16 to=10",
                          "f32:1 to=7",
                          "f32: to=6",
                          "f32:0x8 to=11",
                          "f16:7x17 to=16",
                          "bf16:7x17 to=10",
                          "f64:3x5@-9..9 to=3",
                          "f64:3x5 to=1",
                          "i64:3 to=6",
                          "i64: to=7",
                          "bool:9 to=7",
                          "bool:9 to=10",
                          "i32:9@-2..2 to=9",
                          "u8:9 to=1",
                          "i8:9@-128..127 to=2",
                          "i16:9@-999..999 to=3",
                          "u16:9@0..65535 to=5",
                          "u32:9 to=13",
                          "u64:9 to=12",
                          "f32:4@0..9 to=13",
                          "f32:4@0..9 to=12",
                          "f32:4@0..9 to=4",
                          "f32:4@0..9 to=2",
                          "f32:1x64x40x40 to=10",
                          "f32:8 to=10 nan=1",
                          "f32:8 to=9 nan=1",
                          "f32:10={300,-1,-1.5,3e9,-3e9,1e20,nan,inf,-inf,70000} to=3",
                          "f32:10={300,-1,-1.5,3e9,-3e9,1e20,nan,inf,-inf,70000} to=6",
                          "f64:8={300,-1,1e19,-1e19,1e20,nan,inf,-inf} to=13",
                          "f64:3={1.00048828125,1.000488281250001,65520} to=10",
                          "i64:2={-1,300} to=2",
                          "i64:2={9223372036854775807,4503599627370497} to=16",
                          "f32:2 to=16 round_mode=up"}));
WHIMBREL_REGISTER(Kernel{.op = "Cast", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
