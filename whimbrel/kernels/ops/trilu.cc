// Trilu: the upper triangle y[i, j] = x[i, j] for j - i >= k, or the lower for j - i <= k; 0
// elsewhere.
//
// in   input   any type, rank >= 2; the last two dims are matrices
//      k       i64 scalar, optional, default 0
// attr upper   int, default 1
// out  output  like input
// Source: ONNX operator Trilu (14).

#include "whimbrel/kernels/ops/axes.h"
#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/raw_elements.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  if (c.in(0).dims && c.in(0).rank() < 2) {
    c.Fail("input must have rank 2 or more, is " + ToString(*c.in(0).dims));
  }
  const IntegerList k = InferIntegers(c, "k", 1);
  if (k.count && *k.count != 1) {
    c.Fail("k must be a scalar, has " + std::to_string(*k.count) + " values");
  }
  InferLikeFirst(c);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& shape = call.x(0).shape();
  if (shape.elements() == 0) return;
  const RunIntegers list = ReadIntegers(call, "k", 1);
  const int64_t k = list.count > 0 ? list[0] : 0;
  const bool upper = call.attrs().Int("upper", 1) != 0;
  const int64_t rows = shape[-2];
  const int64_t cols = shape[-1];
  DispatchItemSize(call, call.x(0).dtype(), [&]<typename U>() {
    const U* x = call.x(0).data<U>();
    U* y = call.y(0).data<U>();
    ParallelFor(shape.elements() / cols, 1 + 65536 / cols, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t j = 0; j < cols; ++j) {
          const int64_t diagonal = j - row % rows;
          const bool kept = upper ? diagonal >= k : diagonal <= k;
          y[row * cols + j] = kept ? x[row * cols + j] : U{0};  // all zero bits are 0
        }
      }
    });
  });
}

WHIMBREL_REGISTER(OpSchema{
    .name = "Trilu",
    .since = 14,
    .inputs = {{.name = "input", .group = 1},
               {.name = "k", .types = TypeBit(DType::kInt64), .optional = true}},
    .outputs = {{.name = "output", .group = 1}},
    .attributes = {{"upper", AttributeType::kInt, false, "default 1; 0: the lower triangle"}},
    .infer = Infer,
    .cost = MoveCost,
    .samples = {"f32:4x5",
                "f32:4x5 upper=0",
                "f32:4x5 i64:={1}",
                "f32:4x5 i64:={-2} upper=0",
                "f32:2x3x3 i64:={1} upper=0",
                "f32:1x1",
                "f32:1x1 i64:={-1} upper=0",
                "f32:0x8",
                "f32:3x0",
                "f32:3x3 i64:",
                "f32:3x3 i64:={9223372036854775807}",
                "f32:3x3 i64:={-9223372036854775808} upper=0",
                "f16:7x17",
                "bf16:7x17 i64:1={2}",
                "f64:3x5",
                "i64:4x4 upper=0",
                "bool:5x5",
                "u8:3x3",
                "f32:1x8x160x160",
                "f32:4x4 nan=1"}});
WHIMBREL_REGISTER(Kernel{.op = "Trilu", .name = "reference", .in_place = 1, .run = Run});

}  // namespace
}  // namespace whimbrel
