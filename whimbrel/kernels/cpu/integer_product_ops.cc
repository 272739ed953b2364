// MatMulInteger, QLinearMatMul, ConvInteger and QLinearConv with constant weights: exact int32
// sums, which the QLinear ones requantise row by row.

#include <algorithm>

#include <fmt/format.h>

#include "whimbrel/base/threads.h"
#include "whimbrel/kernels/cpu/integer_conv.h"
#include "whimbrel/kernels/cpu/integer_matmul.h"

namespace whimbrel {
namespace {

constexpr IntegerMatMulInputs kMatMulInteger{.a = 0, .b = 1, .a_zero = 2, .b_zero = 3};
constexpr IntegerMatMulInputs kQLinearMatMul{.a = 0, .b = 3, .a_zero = 2, .b_zero = 5};
constexpr ConvInputs kConvInteger{.x = 0, .w = 1, .x_zero = 2, .w_zero = 3};
constexpr ConvInputs kQLinearConv{.x = 0, .w = 3, .x_zero = 2, .w_zero = 5, .bias = 8};
// Of both QLinear ops.
constexpr size_t kLeftScale = 1, kRightScale = 4, kOutScale = 6, kOutZero = 7;

template <typename Product>
class State final : public KernelState {
 public:
  template <typename Inputs>
  State(const OpCall& call, const Inputs& inputs) : product(call, inputs) {}
  size_t bytes() const override { return product.bytes(); }
  Product product;
};

template <typename Product>
const Product& ProductOf(const OpCall& call) {
  return static_cast<const State<Product>*>(call.state)->product;
}

template <typename Product, const auto& inputs>
bool Accepts(const OpCall& call, std::string* why) {
  *why = Product::Obstacle(call, inputs);
  return why->empty();
}

template <typename Product, const auto& inputs>
std::unique_ptr<KernelState> Prepare(const OpCall& call) {
  return std::make_unique<State<Product>>(call, inputs);
}

size_t ProductBytes(const OpCall& call, const IntegerMatMul& product) {
  return product.workspace_bytes(call);
}
size_t ProductBytes(const OpCall& /*call*/, const IntegerConv& product) {
  return product.workspace_bytes();
}

template <typename Product>
size_t IntegerWorkspace(const OpCall& call) {
  return ProductBytes(call, ProductOf<Product>(call));
}

template <typename Product>
void RunInteger(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  ProductOf<Product>(call).Run(call, workspace, call.y(0).data<int32_t>());
}

// Columns of the result: of the matrix, or its channels.
int64_t Columns(const OpCall& call, const IntegerMatMul& /*product*/) {
  return call.x(kQLinearMatMul.b).shape()[-1];
}
int64_t Columns(const OpCall& call, const IntegerConv& /*product*/) {
  return call.x(kQLinearConv.w).shape()[0];
}

// One scale for the left operand and the output, one or one for each column for the right one.
template <typename Product, const auto& inputs>
bool AcceptsQuantized(const OpCall& call, std::string* why) {
  if (call.x(kRightScale).dtype() != DType::kFloat) {
    *why = fmt::format("scales of type {} are not f32", DTypeName(call.x(kRightScale).dtype()));
  } else if (call.x(kLeftScale).elements() != 1) {
    *why = "rows have scales of their own";
  } else {
    return Accepts<Product, inputs>(call, why);
  }
  return false;
}

// The product's own scratch, factors of the columns, and the sums.
struct QuantizedScratch {
  size_t factors_at, sums_at, bytes;
};

template <typename Product>
QuantizedScratch ScratchOf(const OpCall& call) {
  const auto lines = [](size_t bytes) { return (bytes + 63) / 64 * 64; };
  const Product& product = ProductOf<Product>(call);
  QuantizedScratch s{};
  s.factors_at = lines(ProductBytes(call, product));
  s.sums_at = s.factors_at + lines(static_cast<size_t>(Columns(call, product)) * sizeof(float));
  s.bytes = s.sums_at + static_cast<size_t>(call.y(0).elements()) * sizeof(int32_t);
  return s;
}

template <typename Product>
size_t QuantizedWorkspace(const OpCall& call) {
  return ScratchOf<Product>(call).bytes;
}

template <typename Product>
void RunQuantized(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  const QuantizedScratch scratch = ScratchOf<Product>(call);
  const auto at = [&](size_t offset) { return static_cast<void*>(workspace.data() + offset); };
  const Product& product = ProductOf<Product>(call);
  const int64_t columns = Columns(call, product);
  const auto x_scale = static_cast<float>(OneElement(call, kLeftScale));
  const auto y_scale = static_cast<float>(OneElement(call, kOutScale));
  const auto w_scales = call.x(kRightScale).values<float>();
  if (w_scales.size() != 1 && static_cast<int64_t>(w_scales.size()) != columns) {
    throw Error(Code::kInvalidData, fmt::format("{}: {} scales for {} columns or channels",
                                                call.schema->name, w_scales.size(), columns));
  }
  auto* const factors = static_cast<float*>(at(scratch.factors_at));
  for (size_t i = 0; i < w_scales.size(); ++i) factors[i] = x_scale * w_scales[i] / y_scale;
  auto* const sums = static_cast<int32_t*>(at(scratch.sums_at));
  product.Run(call, workspace, sums);
  const bool has_bias = call.has(kQLinearConv.bias);  // the product has no such input
  const Requantizer how{.bias = has_bias ? call.x(kQLinearConv.bias).data<int32_t>() : nullptr,
                        .factor = factors,
                        .each = w_scales.size() != 1,
                        .zero = static_cast<int32_t>(OneElement(call, kOutZero))};
  const auto requantize = [&]<typename Q>(Q* y) {
    ParallelFor(call.y(0).elements() / columns, 65536 / columns + 1,
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    RequantizeRun(sums + row * columns, how, y + row * columns, columns);
                  }
                });
  };
  if (call.y(0).dtype() == DType::kInt8) {
    requantize(call.y(0).data<int8_t>());
  } else {
    requantize(call.y(0).data<uint8_t>());
  }
}

WHIMBREL_REGISTER(Kernel{.op = "MatMulInteger",
                         .name = "highway",
                         .rank = 50,
                         .accepts = Accepts<IntegerMatMul, kMatMulInteger>,
                         .workspace = IntegerWorkspace<IntegerMatMul>,
                         .prepare = Prepare<IntegerMatMul, kMatMulInteger>,
                         .run = RunInteger<IntegerMatMul>});
WHIMBREL_REGISTER(Kernel{.op = "ConvInteger",
                         .name = "highway",
                         .rank = 50,
                         .layout = LayoutRule::kChannelsLast,
                         .accepts = Accepts<IntegerConv, kConvInteger>,
                         .workspace = IntegerWorkspace<IntegerConv>,
                         .prepare = Prepare<IntegerConv, kConvInteger>,
                         .run = RunInteger<IntegerConv>});
WHIMBREL_REGISTER(Kernel{.op = "QLinearMatMul",
                         .name = "highway",
                         .rank = 50,
                         .accepts = AcceptsQuantized<IntegerMatMul, kQLinearMatMul>,
                         .workspace = QuantizedWorkspace<IntegerMatMul>,
                         .prepare = Prepare<IntegerMatMul, kQLinearMatMul>,
                         .run = RunQuantized<IntegerMatMul>});
WHIMBREL_REGISTER(Kernel{.op = "QLinearConv",
                         .name = "highway",
                         .rank = 50,
                         .layout = LayoutRule::kChannelsLast,
                         .accepts = AcceptsQuantized<IntegerConv, kQLinearConv>,
                         .workspace = QuantizedWorkspace<IntegerConv>,
                         .prepare = Prepare<IntegerConv, kQLinearConv>,
                         .run = RunQuantized<IntegerConv>});

}  // namespace
}  // namespace whimbrel
