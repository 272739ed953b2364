// quantized_product: exact int32 sums of products of 8 bit numbers less their zero points, for
// MatMulInteger, QLinearMatMul, ConvInteger and QLinearConv.

#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "whimbrel/kernels/ops/conv_common.h"
#include "whimbrel/kernels/ops/matmul_common.h"
#include "whimbrel/kernels/ops/quantized.h"

namespace whimbrel {

// The operand in scratch memory as int32, less its zero points.
size_t WidenedIntegerBytes(const Tensor& t);
const int32_t* WidenLessZero(const OpCall& call, size_t operand, size_t zero, bool rows,
                             std::span<std::byte>& workspace);

// Inputs of a convolution call: data, weights, their zero points and the bias; 0 = has none.
struct ConvInputs {
  size_t x = 0, w = 0, x_zero = 0, w_zero = 0, bias = 0;
};
// Dims of the result; fails as Conv does.
std::optional<Dims> InferConvDims(InferContext& c, const ConvInputs& inputs);
// Fails unless input `i` is one element or a vector of one for each output channel of the weights.
void InferChannelParameter(const InferContext& c, size_t i, size_t weights);
Cost QuantizedConvCost(const OpCall& call, const ConvInputs& inputs);
// Scratch of QuantizedConv.
size_t QuantizedConvWorkspace(const OpCall& call, const ConvInputs& inputs);
// The sums, bias included, as doubles at the front of the workspace; they are whole numbers below
// 2^53, so exact.
std::span<const double> QuantizedConv(const OpCall& call, const ConvInputs& inputs,
                                      std::span<std::byte> workspace, Stream& stream);
// [out channels, elements behind] of the convolution's result.
inline int64_t ChannelOf(const Shape& y, int64_t index) {
  return index / y.Product(2, y.rank()) % y[1];
}

}  // namespace whimbrel
