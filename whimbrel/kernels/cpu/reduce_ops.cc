// ReduceMean, ReduceSum, ReduceMax, ReduceMin and the global pools on f32, in either layout.

#include <fmt/format.h>

#include "whimbrel/kernels/cpu/hwy_reduce.h"
#include "whimbrel/kernels/cpu/strided_copy.h"
#include "whimbrel/kernels/ops/axes.h"

namespace whimbrel {
namespace {

// The input in memory order with everything between the first and the last reduced axis as one.
struct Box {
  int64_t outer = 1;
  int64_t count = 1;
  int64_t inner = 1;
  bool joined = true;  // false: a kept axis lies between reduced ones
};

Box BoxOf(const Tensor& x, uint32_t mask) {
  const Shape shape = MemoryShape(x);
  const int rank = shape.rank();
  std::array<bool, kMaxRank> reduced{};
  for (int d = 0; d < rank; ++d) {
    reduced[static_cast<size_t>(MemoryAxis(x, d))] = HasAxis(mask, d);
  }
  Box box;
  for (int d = 0; d < rank; ++d) {
    if (shape[d] == 1) continue;
    if (!reduced[static_cast<size_t>(d)]) {
      (box.count == 1 ? box.outer : box.inner) *= shape[d];
    } else {
      box.joined = box.joined && box.inner == 1;
      box.count *= shape[d];
    }
  }
  return box;
}

uint32_t MaskOf(const OpCall& call) {
  const RunIntegers axes = ReadIntegers(call, "axes", 1);
  if (axes.present && axes.count > 0) return ReadAxisMask(call, axes, call.x(0).shape().rank());
  return call.attrs().Int("noop_with_empty_axes", 0) != 0 ? 0u : ~0u;
}

bool AcceptsBox(const OpCall& call, uint32_t mask, std::string* why) {
  const Tensor& x = call.x(0);
  if (x.dtype() != DType::kFloat) {
    *why = fmt::format("type {} is not float32", DTypeName(x.dtype()));
    return false;
  }
  if (x.elements() == 0) {
    *why = "there is nothing to reduce";
    return false;
  }
  if (!BoxOf(x, mask).joined) {
    *why = fmt::format("a kept axis of {} lies between reduced ones", ToString(x.shape()));
    return false;
  }
  return true;
}

bool AcceptsReduce(const OpCall& call, std::string* why) {
  if (call.has(1) && !call.constant(1)) {
    *why = "the axes are not constant";
    return false;
  }
  const Tensor& x = call.x(0);
  // Without the reduced dims the output has no room for another layout unless it is of the same
  // rank.
  if (x.layout() != Layout::kPlain && call.y(0).shape().rank() != x.shape().rank()) {
    *why = "the reduced axes of a channels-last tensor are dropped";
    return false;
  }
  return AcceptsBox(call, MaskOf(call), why);
}

template <Reduction reduction>
void RunReduce(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Box box = BoxOf(call.x(0), MaskOf(call));
  ReduceMiddle(reduction, call.x(0).data<float>(), box.outer, box.count, box.inner,
               call.y(0).data<float>());
}

constexpr uint32_t kSpatialAxes = ~3u;

bool AcceptsGlobal(const OpCall& call, std::string* why) {
  return AcceptsBox(call, kSpatialAxes, why);
}

template <Reduction reduction>
void RunGlobal(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Box box = BoxOf(call.x(0), kSpatialAxes);
  ReduceMiddle(reduction, call.x(0).data<float>(), box.outer, box.count, box.inner,
               call.y(0).data<float>());
}

Kernel Entry(std::string_view op, bool (*accepts)(const OpCall&, std::string*),
             void (*run)(const OpCall&, std::span<std::byte>, Stream&)) {
  return {.op = op,
          .name = "highway",
          .rank = 50,
          .layout = LayoutRule::kFollow,
          .accepts = accepts,
          .run = run};
}

WHIMBREL_REGISTER(Entry("ReduceSum", AcceptsReduce, RunReduce<Reduction::kSum>));
WHIMBREL_REGISTER(Entry("ReduceMean", AcceptsReduce, RunReduce<Reduction::kMean>));
WHIMBREL_REGISTER(Entry("ReduceMax", AcceptsReduce, RunReduce<Reduction::kMax>));
WHIMBREL_REGISTER(Entry("ReduceMin", AcceptsReduce, RunReduce<Reduction::kMin>));
WHIMBREL_REGISTER(Entry("GlobalAveragePool", AcceptsGlobal, RunGlobal<Reduction::kMean>));
WHIMBREL_REGISTER(Entry("GlobalMaxPool", AcceptsGlobal, RunGlobal<Reduction::kMax>));

}  // namespace
}  // namespace whimbrel
