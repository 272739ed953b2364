// Sums of products of quantised numbers.

#include "whimbrel/kernels/ops/quantized_product.h"

#include <fmt/format.h>

namespace whimbrel {
namespace {

size_t RoundUp(size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

size_t DoubleBytes(const Tensor& t) {
  return RoundUp(static_cast<size_t>(t.elements()) * sizeof(double));
}

template <typename T>
T* Take(std::span<std::byte>& workspace, size_t bytes) {
  WHIMBREL_CHECK(workspace.size() >= bytes);
  T* at = static_cast<T*>(static_cast<void*>(workspace.data()));
  workspace = workspace.subspan(bytes);
  return at;
}

// Elements less the zero points of their channel (dims [channels, inner]) as doubles.
void WidenChannels(const OpCall& call, size_t operand, size_t zero, int64_t inner, double* to) {
  const Tensor& t = call.x(operand);
  const bool has_zero = zero != 0 && call.has(zero);
  const bool per_channel = has_zero && call.x(zero).elements() != 1;
  if (per_channel && call.x(zero).elements() * inner != t.elements()) {
    throw Error(Code::kInvalidData,
                fmt::format("{}: zero points {} for weights {}", call.schema->name,
                            ToString(call.x(zero).shape()), ToString(t.shape())));
  }
  DispatchReference<kQuantized8>(call, t.dtype(), [&]<typename T>() {
    const T* from = t.data<T>();
    const T* zeros = has_zero ? call.x(zero).data<T>() : nullptr;
    ParallelFor(t.elements(), 16384, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int point = zeros == nullptr ? 0 : zeros[per_channel ? i / inner : 0];
        to[i] = from[i] - point;
      }
    });
  });
}

}  // namespace

size_t WidenedIntegerBytes(const Tensor& t) {
  return RoundUp(static_cast<size_t>(t.elements()) * sizeof(int32_t));
}

const int32_t* WidenLessZero(const OpCall& call, size_t operand, size_t zero, bool rows,
                             std::span<std::byte>& workspace) {
  const Tensor& t = call.x(operand);
  const Shape& shape = t.shape();
  const LineParameter zeros(call, zero, shape, rows);
  auto* const to = Take<int32_t>(workspace, WidenedIntegerBytes(t));
  const int64_t cols = shape[-1];
  const int64_t matrix_rows = shape.rank() == 1 ? 1 : shape[-2];
  if (t.elements() == 0) return to;
  // a vector B is one column
  const bool column_vector = shape.rank() == 1 && !rows;
  DispatchReference<kQuantized8>(call, t.dtype(), [&]<typename T>() {
    const T* from = t.data<T>();
    ParallelFor(t.elements() / cols, 16384 / cols + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t col = 0; col < cols; ++col) {
          const int64_t line = rows ? row % matrix_rows : (column_vector ? 0 : col);
          to[row * cols + col] =
              from[row * cols + col] - static_cast<int32_t>(zeros.At(row / matrix_rows, line));
        }
      }
    });
  });
  return to;
}

std::optional<Dims> InferConvDims(InferContext& c, const ConvInputs& inputs) {
  // Conv's own inference on the inputs that Conv has
  std::vector<ValueInfo> infos{c.in(inputs.x), c.in(inputs.w)};
  if (inputs.bias != 0 && c.has(inputs.bias)) infos.push_back(c.in(inputs.bias));
  InferContext conv(c.schema(), c.attrs(), c.opset(), infos, 1);
  InferConv(conv);
  return conv.out(0).dims;
}

void InferChannelParameter(const InferContext& c, size_t i, size_t weights) {
  if (!c.has(i) || !c.in(i).dims || !c.in(weights).dims || c.in(weights).dims->empty()) return;
  const Dims& have = *c.in(i).dims;
  const Dim& channels = (*c.in(weights).dims)[0];
  if (have.empty() || (have.size() == 1 && (!have[0].known() || !channels.known() ||
                                            have[0].Is(1) || have[0].Is(channels.value())))) {
    return;
  }
  c.Fail(fmt::format("{} must be one element or [{}], is {}", c.schema().inputs[i].name,
                     ToString(channels), ToString(have)));
}

namespace {

// The call as Conv would see it.
struct ConvCall {
  ConvCall(const OpCall& call, const ConvInputs& inputs)
      : in{&call.x(inputs.x), &call.x(inputs.w)}, conv(call) {
    conv.in = in;
  }
  std::array<const Tensor*, 2> in;
  OpCall conv;
};

}  // namespace

Cost QuantizedConvCost(const OpCall& call, const ConvInputs& inputs) {
  Cost cost = DefaultCost(call);
  cost.flops = 2 * ConvGeometryOf(ConvCall(call, inputs).conv).macs();
  return cost;
}

size_t QuantizedConvWorkspace(const OpCall& call, const ConvInputs& inputs) {
  size_t bytes =
      DoubleBytes(call.x(inputs.x)) + DoubleBytes(call.x(inputs.w)) + DoubleBytes(call.y(0));
  if (inputs.bias != 0 && call.has(inputs.bias)) bytes += DoubleBytes(call.x(inputs.bias));
  return bytes;
}

std::span<const double> QuantizedConv(const OpCall& call, const ConvInputs& inputs,
                                      std::span<std::byte> workspace, Stream& stream) {
  const auto described = [&](const Tensor& like) {
    Tensor t = Tensor::Described(DType::kDouble, like.shape());
    t.Bind(Take<double>(workspace, DoubleBytes(like)));
    return t;
  };
  Tensor y = described(call.y(0));
  Tensor x = described(call.x(inputs.x)), w = described(call.x(inputs.w)), bias;
  WidenChannels(call, inputs.x, inputs.x_zero, std::max<int64_t>(x.elements(), 1),
                x.data<double>());
  WidenChannels(call, inputs.w, inputs.w_zero,
                std::max<int64_t>(w.shape().Product(1, w.shape().rank()), 1), w.data<double>());
  const bool has_bias = inputs.bias != 0 && call.has(inputs.bias);
  if (has_bias) {
    bias = described(call.x(inputs.bias));
    const auto from = call.x(inputs.bias).values<int32_t>();
    std::copy(from.begin(), from.end(), bias.data<double>());
  }
  const std::array<const Tensor*, 3> in{&x, &w, has_bias ? &bias : nullptr};
  const std::array<Tensor*, 1> out{&y};
  OpCall conv = call;
  conv.in = in;
  conv.out = out;
  RunConvReference(conv, {}, stream);
  return y.values<double>();
}

}  // namespace whimbrel
