// Schema and loop of the window functions.

#include "whimbrel/kernels/ops/window_function.h"

#include <fmt/format.h>

#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/float_to_int.h"

namespace whimbrel {
namespace {

DType OutputType(const Attributes& attributes) {
  const int64_t number = attributes.Int("output_datatype", 1);
  return number > 0 && number < 32 ? static_cast<DType>(number) : DType::kUndefined;
}

void Infer(InferContext& c) {
  const DType dtype = OutputType(c.attrs());
  if (dtype == DType::kUndefined || (TypeBit(dtype) & kNumericTypes) == 0) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: output_datatype {} is not taken", c.schema().name,
                            c.attrs().Int("output_datatype", 1)),
                "numbers are those of onnx.TensorProto.DataType");
  }
  const auto& dims = c.in(0).dims;
  if (dims) {
    const Dim count = ProductOf(*dims, 0, dims->size());
    if (dims->size() > 1 || (count.known() && count.value() != 1)) {
      c.Fail("size must be a scalar, is " + ToString(*dims));
    }
  }
  const auto elements = SmallElements(c, 0);
  const Dim size = elements && elements->size() == 1 ? elements->front() : Dim();
  if (size.known() && size.value() < 0) c.Fail(fmt::format("size is {}", size.value()));
  c.SetOut(0, dtype, Dims{size});
}

}  // namespace

void RunWindowFunction(const OpCall& call, const std::array<double, 3>& a) {
  constexpr double kPi = 3.14159265358979323846;
  const int64_t size = ElementAsInt64(call.x(0), 0);
  if (size < 0) {
    throw Error(Code::kInvalidData, fmt::format("{}: size is {}", call.schema->name, size));
  }
  const bool periodic = call.attrs().Int("periodic", 1) != 0;
  const double step = 2 * kPi / static_cast<double>(periodic ? size : size - 1);
  const DType dtype = OutputType(call.attrs());
  call.ResizeOutput(0, dtype, Shape{size});
  DispatchReference<kNumericTypes>(call, dtype, [&]<typename T>() {
    T* y = call.y(0).data<T>();
    ParallelFor(size, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const double angle = step * static_cast<double>(i);
        const double value =
            size == 1 && !periodic ? 1 : a[0] - a[1] * std::cos(angle) + a[2] * std::cos(2 * angle);
        if constexpr (std::is_integral_v<T>) {
          y[i] = FloatToInt<T>(value);
        } else {
          y[i] = Narrow<T>(value);
        }
      }
    });
  });
}

OpSchema WindowFunctionSchema(std::string_view name) {
  return OpSchema{
      .name = name,
      .since = 17,
      .inputs = {{.name = "size", .types = kIndexTypes}},
      .outputs = {{.name = "output", .types = kNumericTypes}},
      .attributes = {{"periodic", AttributeType::kInt, false, "default 1; 0: symmetric"},
                     {"output_datatype", AttributeType::kInt, false, "ONNX number; default f32"}},
      .infer = Infer,
      .samples = {"i64:={10}", "i64:={10} periodic=0", "i32:={1}", "i32:={1} periodic=0",
                  "i64:={0}", "i64:={0} periodic=0", "i64:1={2} periodic=0",
                  "i64:", "i64:={17} output_datatype=10", "i64:={17} output_datatype=16",
                  "i64:={17} output_datatype=11", "i64:={5} output_datatype=7",
                  "i64:={5} output_datatype=2", "i64:={4096}"},
  };
}

}  // namespace whimbrel
