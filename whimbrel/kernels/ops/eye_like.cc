// EyeLike: y[i, i + k] = 1, 0 elsewhere.
//
// in   input   any type, rank 2; only its shape matters
// attr k       int, default 0
//      dtype   int, an ONNX type number, default the type of input
// out  output  shape of input
// Source: ONNX operator EyeLike (9, 22).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  if (c.in(0).dims && c.in(0).rank() != 2) {
    c.Fail("input must have rank 2, is " + ToString(*c.in(0).dims));
  }
  DType dtype = c.in(0).dtype;
  if (c.attrs().Has("dtype")) {
    const int64_t number = c.attrs().Int("dtype", 0);
    dtype = number > 0 && number < 32 ? static_cast<DType>(number) : DType::kUndefined;
    if (dtype == DType::kUndefined || (c.schema().outputs[0].types & TypeBit(dtype)) == 0) {
      throw Error(Code::kUnsupported,
                  "EyeLike: dtype " + std::to_string(number) + " is not taken at opset " +
                      std::to_string(c.opset()),
                  "numbers are those of onnx.TensorProto.DataType");
    }
  }
  c.SetOut(0, dtype, c.in(0).dims);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& shape = call.y(0).shape();
  if (shape.elements() == 0) return;
  const int64_t k = call.attrs().Int("k", 0);
  const int64_t cols = shape[1];
  DispatchReference<kAllTypes>(call, call.y(0).dtype(), [&]<typename T>() {
    T* y = call.y(0).data<T>();
    ParallelFor(shape[0], 1 + 65536 / cols, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t j = 0; j < cols; ++j) {
          y[row * cols + j] = Narrow<T>(static_cast<WideOf<T>>(j - row == k ? 1 : 0));
        }
      }
    });
  });
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return OpSchema{
      .name = "EyeLike",
      .since = since,
      .until = until,
      .inputs = {{.name = "input", .types = types}},
      .outputs = {{.name = "output", .types = types}},
      .attributes = {{"k", AttributeType::kInt, false, "default 0; the diagonal that is 1"},
                     {"dtype", AttributeType::kInt, false, "ONNX type number; default of input"}},
      .infer = Infer,
      .cost = MoveCost,
      .samples = std::move(samples),
  };
}

WHIMBREL_REGISTER(Schema(9, 22, kAllTypesTo12, {"f32:3x4", "i32:4x3 dtype=1"}));
WHIMBREL_REGISTER(Schema(22, INT_MAX, kAllTypes,
                         {"f32:4x5", "f32:4x5 k=1", "f32:4x5 k=-2", "f32:4x5 k=9", "f32:1x1",
                          "f32:0x8", "f32:3x0", "f16:7x17", "bf16:7x17 dtype=16", "f64:3x5",
                          "i64:3x3 dtype=10", "bool:3x3", "f32:3x3 dtype=9", "u8:3x3 dtype=7",
                          "f32:160x160 k=-9223372036854775808"}));
WHIMBREL_REGISTER(Kernel{.op = "EyeLike", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
