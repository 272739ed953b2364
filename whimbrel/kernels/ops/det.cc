// Det: y[..] = the determinant of x[.., :, :], by Gauss elimination with the largest pivot.
//
// in   X  f32 | f64 | f16 | bf16, [.., M, M]
// out  Y  the leading dims of X; the determinant of 0 x 0 is 1
// Source: ONNX operator Det (11, 22).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  const auto& in = c.in(0).dims;
  if (!in) return c.SetOut(0, c.in(0).dtype, std::nullopt);
  const size_t rank = in->size();
  if (rank < 2) c.Fail("X must be [.., M, M], is " + ToString(*in));
  const Dim& rows = (*in)[rank - 2];
  const Dim& cols = (*in)[rank - 1];
  if (rows.known() && cols.known() && !rows.Same(cols)) {
    c.Fail("the matrices of X " + ToString(*in) + " are not square");
  }
  c.SetOut(0, c.in(0).dtype, Dims(in->begin(), in->end() - 2));
}

size_t Workspace(const OpCall& call) {
  return static_cast<size_t>(call.x(0).elements()) * sizeof(double);
}

// Destroys the matrix. A column of zeros ends it with 0, NaN goes on.
double Determinant(double* a, int64_t size) {
  double product = 1;
  for (int64_t k = 0; k < size; ++k) {
    int64_t pivot = k;
    for (int64_t row = k + 1; row < size; ++row) {
      if (std::abs(a[row * size + k]) > std::abs(a[pivot * size + k])) pivot = row;
    }
    if (pivot != k) {
      std::swap_ranges(a + k * size, a + (k + 1) * size, a + pivot * size);
      product = -product;
    }
    const double head = a[k * size + k];
    product *= head;
    if (head == 0) return product;
    for (int64_t row = k + 1; row < size; ++row) {
      const double factor = a[row * size + k] / head;
      for (int64_t col = k + 1; col < size; ++col)
        a[row * size + col] -= factor * a[k * size + col];
    }
  }
  return product;
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  const int64_t size = call.x(0).shape()[-1];
  const int64_t area = size * size;
  auto* scratch = static_cast<double*>(static_cast<void*>(workspace.data()));
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    T* y = call.y(0).data<T>();
    ParallelFor(call.y(0).elements(), 1 + 16384 / (area + 1), [&](int64_t begin, int64_t end) {
      for (int64_t m = begin; m < end; ++m) {
        double* a = scratch + m * area;
        for (int64_t i = 0; i < area; ++i) a[i] = Widen(x[m * area + i]);
        y[m] = Narrow<T>(Determinant(a, size));
      }
    });
  });
}

// 2/3 M^3 a matrix.
Cost DetCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops = static_cast<double>(call.x(0).elements()) *
               static_cast<double>(call.x(0).shape()[-1]) * 2 / 3;
  return cost;
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema schema = MakeSchema({.name = "Det",
                                .since = since,
                                .until = until,
                                .types = types,
                                .infer = Infer,
                                .cost = DetCost,
                                .samples = std::move(samples)});
  schema.matrix_op = true;
  return schema;
}

WHIMBREL_REGISTER(Schema(11, 22, kFloatTypesTo12, {"f32:3x3", "f16:2x2x2", "f64:4x4"}));
WHIMBREL_REGISTER(Schema(22, INT_MAX, kFloatTypes,
                         {"f32:2x2={1,2,3,4}", "f32:2x3x4x4", "f32:1x1", "f32:0x3x3", "f32:2x0x0",
                          "f32:3x3={0,1,0,1,0,0,0,0,1}", "f32:2x2={1,2,2,4}",
                          "f32:3x3={0,1,2,0,3,4,0,5,6}", "f16:3x3", "bf16:5x2x2", "f64:7x7",
                          "f32:64x8x8", "f32:3x3 nan=1"}));
WHIMBREL_REGISTER(Kernel{.op = "Det", .name = "reference", .workspace = Workspace, .run = Run});

}  // namespace
}  // namespace whimbrel
