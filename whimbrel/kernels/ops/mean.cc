// Mean: y = the mean of the inputs, all broadcast; rounded once.
//
// in   data_0  one or more, f32 | f64 | f16 | bf16, one type
// out  mean    like data_0
// Source: ONNX operator Mean (6, 8, 13).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

// One input after the other passes over a block of sums on the stack.
template <typename T>
void MeanOfBlock(const OpCall& call, int64_t begin, int64_t end, std::span<double> sums) {
  std::fill(sums.begin(), sums.end(), 0.0);
  for (const Tensor* in : call.in) {
    const T* x = in->data<T>();
    const BroadcastWalk<1> walk(call.y(0).shape(), {&in->shape()});
    walk.Run(begin, end, [&](int64_t i, const std::array<int64_t, 1>& at) {
      sums[static_cast<size_t>(i - begin)] += static_cast<double>(x[at[0]]);
    });
  }
  T* y = call.y(0).data<T>();
  const auto count = static_cast<double>(call.in.size());
  for (int64_t i = begin; i < end; ++i) {
    y[i] = Narrow<T>(sums[static_cast<size_t>(i - begin)] / count);
  }
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    constexpr int64_t kBlock = 256;
    ParallelFor(call.y(0).elements(), 16384, [&](int64_t begin, int64_t end) {
      std::array<double, kBlock> sums;
      for (int64_t start = begin; start < end; start += kBlock) {
        MeanOfBlock<T>(call, start, std::min(start + kBlock, end), sums);
      }
    });
  });
}

// Opset 6 does not broadcast; what it allows means the same at 8.
OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  return MakeSchema({.name = "Mean",
                     .since = since,
                     .until = until,
                     .types = types,
                     .inputs = {"data_0"},
                     .output = "mean",
                     .variadic = true,
                     .infer = InferBroadcast,
                     .cost = VariadicCost,
                     .samples = std::move(samples)});
}

WHIMBREL_REGISTER(Schema(6, 13, kFloatTypesTo12,
                         {"f32:3x4 f32:3x4 f32:3x4", "f32:3x4 f32:4 f32: opset=8", "f16:5",
                          "f64:2 f64:2"}));
WHIMBREL_REGISTER(Schema(13, INT_MAX, kFloatTypes,
                         {"f32:3x16 f32:3x16", "f32:2x3x5 f32:3x1 f32:5 f32:", "f32:4",
                          "f32: f32:4", "f32:0x3 f32:3", "f32:1 f32:1", "f16:7x17 f16:17 f16:7x1",
                          "bf16:5x9 bf16:5x1", "f64:3x3 f64:1x3",
                          "f32:1x64x40x40 f32:1x64x1x1 f32:1x64x40x40", "f32:8 f32:8 f32:8 nan=1",
                          "f16:1={60000} f16:1={60000}"}));
WHIMBREL_REGISTER(Kernel{.op = "Mean", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
