// Slice and Pad (constant) of any type by boxes, in either layout.

#include <algorithm>

#include <fmt/format.h>

#include "whimbrel/kernels/cpu/strided_copy.h"
#include "whimbrel/kernels/ops/axes.h"

namespace whimbrel {
namespace {

bool ConstantFrom(const OpCall& call, size_t first, size_t last, std::string* why) {
  for (size_t i = first; i <= last; ++i) {
    if (call.has(i) && !call.constant(i)) {
      *why = fmt::format("input {} ({}) is not constant", i, call.schema->inputs[i].name);
      return false;
    }
  }
  return true;
}

bool SameRank(const OpCall& call, std::string* why) {
  if (call.x(0).shape().rank() == call.y(0).shape().rank()) return true;
  *why = "the output's shape is not known";
  return false;
}

bool AcceptsSlice(const OpCall& call, std::string* why) {
  return ConstantFrom(call, 1, 4, why) && SameRank(call, why);
}

// How many elements an axis keeps is in the output's shape, so the ends need not be read.
void RunSlice(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Tensor& x = call.x(0);
  const Tensor& y = call.y(0);
  if (y.elements() == 0) return;
  const int rank = x.shape().rank();
  const RunIntegers starts = ReadIntegers(call, "starts", 1);
  const RunIntegers axes = ReadIntegers(call, "axes", 3);
  const RunIntegers steps =
      call.schema->since >= 10 ? ReadIntegers(call, "steps", 4) : RunIntegers{};
  const auto in_strides = MemoryShape(x).Strides();
  const Shape out = MemoryShape(y);
  const auto out_strides = out.Strides();
  StridedBlock block;
  for (int d = 0; d < rank; ++d) {
    const auto k = static_cast<size_t>(d);
    block.Append(out[d], in_strides[k], out_strides[k]);
  }
  for (int i = 0; i < starts.count; ++i) {
    const int axis = NormalizeAxis(axes.present ? axes[i] : i, rank, "Slice");
    const auto m = static_cast<size_t>(MemoryAxis(x, axis));
    const int64_t dim = x.shape()[axis];
    const int64_t step = steps.present ? steps[i] : 1;
    const int64_t start = starts[i] < 0 ? starts[i] + dim : starts[i];
    block.in_offset += std::clamp<int64_t>(start, 0, step > 0 ? dim : dim - 1) * in_strides[m];
    // a step beyond the axis is taken once only, and its product with the stride could overflow
    block.in_strides[m] = block.dims[m] > 1 ? step * in_strides[m] : 0;
  }
  CopyStrided(block, ItemSize(x.dtype()), x.raw(), call.y(0).raw());
}

bool AcceptsPad(const OpCall& call, std::string* why) {
  if (call.attrs().String("mode", "constant") != "constant") {
    *why = fmt::format("mode {} is not constant", call.attrs().String("mode", ""));
    return false;
  }
  if (call.schema->since < 11 && call.x(0).dtype() != DType::kFloat) {
    *why = fmt::format("type {} with the padding value in an attribute is not float32",
                       DTypeName(call.x(0).dtype()));
    return false;
  }
  return ConstantFrom(call, 1, 1, why) && ConstantFrom(call, 3, 3, why) && SameRank(call, why);
}

void RunPad(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Tensor& x = call.x(0);
  Tensor& y = call.y(0);
  if (y.elements() == 0) return;
  const int rank = x.shape().rank();
  const size_t item = ItemSize(x.dtype());
  const RunIntegers pads = ReadIntegers(call, "pads", 1);
  const RunIntegers axes = call.schema->since >= 18 ? ReadIntegers(call, "axes", 3) : RunIntegers{};
  const int count = axes.present ? axes.count : rank;

  const float attribute = static_cast<float>(call.attrs().Float("value", 0));
  constexpr std::array<std::byte, 8> kZero{};
  const void* constant = kZero.data();
  if (call.schema->since < 11) {
    constant = &attribute;
  } else if (call.has(2) && call.x(2).elements() > 0) {
    constant = call.x(2).raw();
  }

  const auto in_strides = MemoryShape(x).Strides();
  const Shape in = MemoryShape(x);
  const Shape out = MemoryShape(y);
  const auto out_strides = out.Strides();
  // On each axis output [from, to) holds data.
  std::array<int64_t, kMaxRank> from{};
  std::array<int64_t, kMaxRank> to{};
  StridedBlock data;
  for (int d = 0; d < rank; ++d) to[static_cast<size_t>(d)] = in[d];
  for (int i = 0; i < count; ++i) {
    const int axis = NormalizeAxis(axes.present ? axes[i] : i, rank, "Pad");
    const auto m = static_cast<size_t>(MemoryAxis(x, axis));
    const int64_t before = pads[i];
    from[m] = std::clamp<int64_t>(before, 0, out[static_cast<int>(m)]);
    to[m] = std::clamp<int64_t>(before + x.shape()[axis], from[m], out[static_cast<int>(m)]);
    data.in_offset += std::max<int64_t>(0, -before) * in_strides[m];
  }
  for (int d = 0; d < rank; ++d) {
    const auto k = static_cast<size_t>(d);
    data.Append(to[k] - from[k], in_strides[k], out_strides[k]);
    data.out_offset += from[k] * out_strides[k];
  }
  CopyStrided(data, item, x.raw(), y.raw());
  // The frame: on axis d what lies before and after, within the data of the axes outside it.
  for (int d = 0; d < rank; ++d) {
    const auto k = static_cast<size_t>(d);
    for (const auto& [begin, end] : {std::pair(int64_t{0}, from[k]), std::pair(to[k], out[d])}) {
      StridedBlock frame;
      for (int e = 0; e < rank; ++e) {
        const auto j = static_cast<size_t>(e);
        const int64_t low = e < d ? from[j] : e == d ? begin : 0;
        const int64_t high = e < d ? to[j] : e == d ? end : out[e];
        frame.Append(high - low, 0, out_strides[j]);
        frame.out_offset += low * out_strides[j];
      }
      CopyStrided(frame, item, constant, y.raw());
    }
  }
}

WHIMBREL_REGISTER(Kernel{.op = "Slice",
                         .name = "runs",
                         .rank = 50,
                         .layout = LayoutRule::kFollow,
                         .accepts = AcceptsSlice,
                         .run = RunSlice});
WHIMBREL_REGISTER(Kernel{.op = "Pad",
                         .name = "runs",
                         .rank = 50,
                         .layout = LayoutRule::kFollow,
                         .accepts = AcceptsPad,
                         .run = RunPad});

}  // namespace
}  // namespace whimbrel
