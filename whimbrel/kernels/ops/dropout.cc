// Dropout: y = x, as at inference: nothing is dropped, and the mask is all ones.
//
// in   data           f32 | f64 | f16 | bf16
//      ratio          float scalar, optional, from 12
//      training_mode  bool scalar, optional, from 12; true is refused unless ratio is 0
// attr ratio          float, before 12
//      seed           int, from 12; not used
// out  output         like data
//      mask           shape of data, optional; type of data before 10, then bool
// Before 12 ONNX does not say what the mask holds then; ONNX Runtime gives zeros, here it is ones
// as from 12 on. Source: ONNX operator Dropout (7, 10, 12, 13, 22).

#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/move.h"

namespace whimbrel {
namespace {

[[noreturn]] void RefuseTraining() {
  throw Error(Code::kUnsupported, "Dropout: training_mode is true with a ratio other than 0",
              "export the model for inference (model.eval()), or set training_mode to false");
}

bool IsSet(const Tensor& t) {
  return t.elements() > 0 && ElementAsDouble(t, 0) != 0;
}

DType MaskType(const OpSchema& schema, DType data) {
  return schema.since < 10 ? data : DType::kBool;
}

void Infer(InferContext& c) {
  for (size_t i = 1; i < 3; ++i) {
    if (c.in(i).dims && !c.in(i).dims->empty()) {
      const Dim count = ProductOf(*c.in(i).dims, 0, c.in(i).dims->size());
      if (count.known() && count.value() != 1) {
        c.Fail(std::string(c.schema().inputs[i].name) + " must be a scalar, is " +
               ToString(*c.in(i).dims));
      }
    }
  }
  const auto known = [&](size_t i) { return c.in(i).constant && c.in(i).constant->has_data(); };
  // A ratio that is not known yet may be 0.
  if (known(2) && IsSet(*c.in(2).constant) &&
      (!c.has(1) || (known(1) && IsSet(*c.in(1).constant)))) {
    RefuseTraining();
  }
  c.SetOut(0, c.in(0).dtype, c.in(0).dims);
  c.SetOut(1, MaskType(c.schema(), c.in(0).dtype), c.in(0).dims);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  if (call.has(2) && IsSet(call.x(2)) && (!call.has(1) || IsSet(call.x(1)))) RefuseTraining();
  CopyView(call);
  if (!call.has_out(1)) return;
  DispatchReference<kFloatTypes | kBoolType>(call, call.y(1).dtype(), [&]<typename T>() {
    const auto mask = call.y(1).values<T>();
    std::fill(mask.begin(), mask.end(), Narrow<T>(static_cast<WideOf<T>>(1)));
  });
}

bool AcceptsView(const OpCall& call, std::string* why) {
  if (!call.has_out(1)) return true;
  *why = "the mask is asked for";
  return false;
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema schema{
      .name = "Dropout",
      .since = since,
      .until = until,
      .inputs = {{.name = "data", .types = types, .group = 1}},
      .outputs = {{.name = "output", .types = types, .group = 1},
                  {.name = "mask", .types = since < 10 ? types : kBoolType, .optional = true}},
      .infer = Infer,
      .cost = MoveCost,
      .samples = std::move(samples),
  };
  if (since < 12) {
    schema.attributes = {{"ratio", AttributeType::kFloat, false, "default 0.5; for training"}};
  } else {
    schema.inputs.push_back({.name = "ratio", .types = types, .optional = true});
    schema.inputs.push_back({.name = "training_mode", .types = kBoolType, .optional = true});
    schema.attributes = {{"seed", AttributeType::kInt, false, "for training"}};
  }
  return schema;
}

WHIMBREL_REGISTER(Schema(7, 10, kFloatTypesTo12, {"f32:3x4 ratio=0.2", "f16:5 outputs=2"}));
WHIMBREL_REGISTER(Schema(10, 12, kFloatTypesTo12, {"f32:3x4 ratio=0.2", "f16:5 outputs=2"}));
WHIMBREL_REGISTER(Schema(12, 13, kFloatTypesTo12,
                         {"f32:3x4 f32:={0.2}", "f64:5 outputs=2 seed=0"}));
WHIMBREL_REGISTER(Schema(13, INT_MAX, kFloatTypes,
                         {"f32:3x16", "f32:1 f32:={0.5}", "f32:", "f32:0x8 outputs=2",
                          "f32:3x4 f32:={0} bool:={1} outputs=2", "f32:3x4 f32:={0.5} bool:={0}",
                          "f32:3x4 - bool:={0} outputs=2", "f16:7x17 f32:={0.1}",
                          "bf16:7x17 outputs=2", "f64:3x5", "f32:1x64x40x40", "f32:8 nan=1"}));
WHIMBREL_REGISTER(Kernel{.op = "Dropout", .name = "reference", .run = Run});
WHIMBREL_REGISTER(Kernel{
    .op = "Dropout", .name = "view", .rank = 10, .view = true, .accepts = AcceptsView, .run = Run});

}  // namespace
}  // namespace whimbrel
