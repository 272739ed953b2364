// IsInf: y = x is infinite, of the signs asked for
//
// in   X  f32 | f64, from 20 also f16 | bf16
// attr detect_positive  int, default 1
//      detect_negative  int, default 1
// out  Y  bool, shape of X
// Source: ONNX operator IsInf (10, 20).

#include "whimbrel/kernels/ops/classify.h"

namespace whimbrel {
namespace {

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const bool positive = call.attrs().Int("detect_positive", 1) != 0;
  const bool negative = call.attrs().Int("detect_negative", 1) != 0;
  ClassifyReference(call, [=](double x) { return std::isinf(x) && (x > 0 ? positive : negative); });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return ClassifySchema(
      {.name = "IsInf",
       .since = since,
       .until = until,
       .types = types,
       .attributes = {{"detect_positive", AttributeType::kInt, false, "default 1"},
                      {"detect_negative", AttributeType::kInt, false, "default 1"}},
       .samples = std::move(samples)});
}

WHIMBREL_REGISTER(Schema(10, 20, TypeBit(DType::kFloat) | TypeBit(DType::kDouble),
                         {"f32:3x4 nan=1", "f64:5 nan=1 detect_negative=0"}));
WHIMBREL_REGISTER(Schema(20, INT_MAX, kFloatTypes,
                         {"f32:3x16", "f32:1", "f32:", "f32:0x8", "f16:7x17 nan=1",
                          "bf16:7x17 nan=1", "f64:3x5 nan=1", "f32:1x64x40x40", "f32:8 nan=1",
                          "f32:5={nan,inf,-inf,0,3e38} detect_positive=0",
                          "f32:5={nan,inf,-inf,0,3e38} detect_negative=0",
                          "f32:3={inf,-inf,1} detect_negative=0 detect_positive=0"}));
WHIMBREL_REGISTER(Kernel{.op = "IsInf", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
