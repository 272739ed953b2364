// AffineGrid: grid[n, (d,) h, w, :] = theta[n] * (x, y (, z), 1), positions in [-1, 1]
//
// in   theta  f32 | f64 | f16 | bf16, [N, 2, 3] or [N, 3, 4]
//      size   i64 [4] or [5]: (N, C, H, W) or (N, C, D, H, W)
// attr align_corners  int, default 0: -1 and 1 are the outer edges; 1: centres of the corner pixels
// out  grid   [N, H, W, 2] or [N, D, H, W, 3]
// With align_corners one pixel lies at 0, as PyTorch has it.
// Source: ONNX operator AffineGrid (20).

#include <fmt/format.h>

#include "whimbrel/kernels/ops/axes.h"
#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

// 2 or 3; 0 when neither input tells.
int64_t SpatialDims(const InferContext& c) {
  int64_t spatial = 0;
  if (const auto& theta = c.in(0).dims) {
    if (theta->size() != 3) c.Fail("theta must be [N, 2, 3] or [N, 3, 4], is " + ToString(*theta));
    const Dim& rows = (*theta)[1];
    const Dim& cols = (*theta)[2];
    if (rows.known()) spatial = rows.value();
    if (!rows.known() && cols.known()) spatial = cols.value() - 1;
    if ((rows.known() || cols.known()) && spatial != 2 && spatial != 3) {
      c.Fail("theta must be [N, 2, 3] or [N, 3, 4], is " + ToString(*theta));
    }
    if (rows.known() && cols.known() && cols.value() != rows.value() + 1) {
      c.Fail("theta must be [N, 2, 3] or [N, 3, 4], is " + ToString(*theta));
    }
  }
  const IntegerList size = InferIntegers(c, "size", 1);
  if (!size.count) return spatial;
  if ((*size.count != 4 && *size.count != 5) || (spatial != 0 && *size.count != spatial + 2)) {
    c.Fail(fmt::format("size has {} values, theta is {}", *size.count,
                       c.in(0).dims ? ToString(*c.in(0).dims) : "of unknown shape"),
           "4 values for [N, 2, 3], 5 for [N, 3, 4]");
  }
  return *size.count - 2;
}

void Infer(InferContext& c) {
  const int64_t spatial = SpatialDims(c);
  if (spatial == 0) return c.SetOut(0, c.in(0).dtype, std::nullopt);
  Dims out(static_cast<size_t>(spatial) + 2);
  out.back() = spatial;
  if (c.in(0).dims) out[0] = c.in(0).dims->front();
  const auto size = SmallElements(c, 1);
  if (size && size->size() == static_cast<size_t>(spatial) + 2) {
    for (const Dim& d : *size) {
      if (d.known() && d.value() < 0) c.Fail("size " + ToString(*size) + " has a negative value");
    }
    const Dim& batch = size->front();
    if (batch.known() && out[0].known() && !batch.Same(out[0])) {
      c.Fail(fmt::format("size asks for a batch of {}, theta is {}", batch.value(),
                         ToString(*c.in(0).dims)));
    }
    if (!out[0].known() && batch.known()) out[0] = batch;
    for (size_t d = 0; d < static_cast<size_t>(spatial); ++d) out[d + 1] = (*size)[d + 2];
  }
  c.SetOut(0, c.in(0).dtype, std::move(out));
}

double Position(int64_t i, int64_t count, bool align_corners) {
  if (!align_corners) return (2 * static_cast<double>(i) + 1) / static_cast<double>(count) - 1;
  return count == 1 ? 0 : 2 * static_cast<double>(i) / static_cast<double>(count - 1) - 1;
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const RunIntegers size = ReadIntegers(call, "size", 1);
  const int spatial = size.count - 2;
  const Shape& theta = call.x(0).shape();
  if (size[0] != theta[0] || (spatial != 2 && spatial != 3) || theta[1] != spatial) {
    throw Error(Code::kInvalidData,
                fmt::format("AffineGrid: size of {} values with batch {} for theta {}", size.count,
                            size[0], ToString(theta)));
  }
  std::array<int64_t, kMaxRank> dims{};
  dims[0] = size[0];
  for (int d = 0; d < spatial; ++d) dims[static_cast<size_t>(d) + 1] = size[d + 2];
  dims[static_cast<size_t>(spatial) + 1] = spatial;
  const Shape out(std::span<const int64_t>(dims.data(), static_cast<size_t>(spatial) + 2));
  call.ResizeOutput(0, call.x(0).dtype(), out);
  if (out.elements() == 0) return;
  const int64_t points = out.Product(1, spatial + 1);
  const bool align_corners = call.attrs().Int("align_corners", 0) != 0;
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* matrix = call.x(0).data<T>();
    T* y = call.y(0).data<T>();
    ParallelFor(out[0] * points, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        std::array<double, 4> at{};  // x, y, (z,) 1: the last dim first
        int64_t rest = i % points;
        for (int d = spatial; d > 0; --d) {
          at[static_cast<size_t>(spatial - d)] = Position(rest % out[d], out[d], align_corners);
          rest /= out[d];
        }
        at[static_cast<size_t>(spatial)] = 1;
        const T* m = matrix + i / points * spatial * (spatial + 1);
        for (int row = 0; row < spatial; ++row) {
          double sum = 0;
          for (int k = 0; k <= spatial; ++k) {
            sum += Widen(m[row * (spatial + 1) + k]) * at[static_cast<size_t>(k)];
          }
          y[i * spatial + row] = Narrow<T>(sum);
        }
      }
    });
  });
}

// A row of theta for each element.
Cost GridCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops *= 2 * static_cast<double>(call.x(0).shape()[-1]);
  return cost;
}

WHIMBREL_REGISTER(OpSchema{
    .name = "AffineGrid",
    .since = 20,
    .inputs = {{.name = "theta", .types = kFloatTypes, .group = 1},
               {.name = "size", .types = TypeBit(DType::kInt64)}},
    .outputs = {{.name = "grid", .types = kFloatTypes, .group = 1}},
    .attributes = {{"align_corners", AttributeType::kInt, false, "default 0"}},
    .infer = Infer,
    .cost = GridCost,
    .samples = {"f32:2x2x3 i64:4={2,3,5,6}", "f32:2x2x3 i64:4={2,3,5,6} align_corners=1",
                "f32:2x3x4 i64:5={2,3,4,5,6}", "f32:2x3x4 i64:5={2,3,4,5,6} align_corners=1",
                "f32:1x2x3 i64:4={1,1,1,1}", "f32:1x2x3 i64:4={1,1,1,1} align_corners=1",
                "f32:0x2x3 i64:4={0,3,5,6}", "f32:1x2x3 i64:4={1,3,0,6}", "f32:3x2x3 i64:4@3..3",
                "f16:1x2x3 i64:4={1,1,7,3}", "bf16:1x2x3 i64:4={1,1,7,3}",
                "f64:1x3x4 i64:5={1,1,2,3,2}", "f32:1x2x3 i64:4={1,3,160,160}",
                "f32:1x2x3 i64:4={1,1,2,2} nan=1"}});
WHIMBREL_REGISTER(Kernel{.op = "AffineGrid", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
