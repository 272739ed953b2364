// Size: the number of elements of data.
//
// in   data  any type
// out  size  scalar i64
// Source: ONNX operator Size (1, 13, 19, 21, 23, 24, 25).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  c.SetOut(0, DType::kInt64, Dims{});
  if (const auto& dims = c.in(0).dims) c.out(0).elements = Dims{ProductOf(*dims, 0, dims->size())};
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  *call.y(0).data<int64_t>() = call.x(0).elements();
}

// The elements of data are not read.
Cost CostOfSize(const OpCall& call) {
  return {.flops = 0, .bytes = static_cast<double>(call.y(0).bytes())};
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return MakeSchema({.name = "Size",
                     .since = since,
                     .until = until,
                     .types = types,
                     .out_types = TypeBit(DType::kInt64),
                     .inputs = {"data"},
                     .output = "size",
                     .infer = Infer,
                     .cost = CostOfSize,
                     .samples = std::move(samples)});
}

WHIMBREL_REGISTER(Schema(1, 13, kAllTypesTo12, {"f32:3x4 opset=7", "i64:5"}));
WHIMBREL_REGISTER(Schema(13, INT_MAX, kAllTypes,
                         {"f32:3x16", "f32:1", "f32:", "f32:0x8", "f16:7x17", "bf16:3",
                          "bool:2x3x4x5x6", "i64:1x64x40x40"}));
WHIMBREL_REGISTER(Kernel{.op = "Size", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
