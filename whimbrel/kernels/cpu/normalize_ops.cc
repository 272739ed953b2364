// Softmax, LogSoftmax, LayerNormalization, RMSNormalization and BatchNormalization on f32.

#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "whimbrel/base/threads.h"
#include "whimbrel/kernels/cpu/hwy_elementwise.h"
#include "whimbrel/kernels/cpu/hwy_rows.h"
#include "whimbrel/kernels/cpu/strided_copy.h"
#include "whimbrel/kernels/ops/softmax_common.h"

namespace whimbrel {
namespace {

bool AcceptsFloat(const OpCall& call, std::string* why) {
  for (const Tensor* t : call.in) {
    if (t != nullptr && t->dtype() != DType::kFloat) {
      *why = fmt::format("type {} is not float32", DTypeName(t->dtype()));
      return false;
    }
  }
  return true;
}

bool AcceptsSoftmax(const OpCall& call, std::string* why) {
  if (call.x(0).layout() != Layout::kPlain && call.schema->since < 13) {
    *why = "before opset 13 a row of channels-last data does not lie in one piece";
    return false;
  }
  return AcceptsFloat(call, why);
}

SoftmaxRows RowsInMemory(const OpCall& call) {
  const Tensor& x = call.x(0);
  if (x.layout() == Layout::kPlain) return SoftmaxRowsOf(call);
  const int rank = x.shape().rank();
  const int axis =
      MemoryAxis(x, NormalizeAxis(call.attrs().Int("axis", -1), rank, call.schema->name));
  const Shape shape = MemoryShape(x);
  const int64_t inner = shape.Product(axis + 1, rank);
  return {.rows = shape.Product(0, axis) * inner, .length = shape[axis], .inner = inner};
}

template <bool kLogarithm>
void RunSoftmax(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  static const SoftmaxFunction softmax = FindSoftmax(kLogarithm);
  const float* x = call.x(0).data<float>();
  float* y = call.y(0).data<float>();
  if (call.y(0).elements() == 0) return;
  const SoftmaxRows rows = RowsInMemory(call);
  const int64_t length = rows.length;
  const int64_t inner = rows.inner;
  constexpr int64_t kGrain = 16384;  // elements, about 5 us
  if (inner == 1) {
    ParallelFor(rows.rows, 1 + kGrain / length, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) softmax(x + r * length, length, 1, 1, y + r * length);
    });
    return;
  }
  constexpr int64_t kStrip = 16;
  const int64_t strips = (inner + kStrip - 1) / kStrip;
  ParallelFor(rows.rows / inner * strips, 1 + kGrain / (length * kStrip),
              [&](int64_t begin, int64_t end) {
                for (int64_t k = begin; k < end; ++k) {
                  const int64_t at = k % strips * kStrip;
                  const int64_t offset = k / strips * length * inner + at;
                  softmax(x + offset, length, inner, std::min(kStrip, inner - at), y + offset);
                }
              });
}

// The last axes from `axis` on make a row; scale and bias must have just these dims.
int64_t RowLength(const OpCall& call) {
  const Shape& shape = call.x(0).shape();
  const int axis = NormalizeAxis(call.attrs().Int("axis", -1), shape.rank(), call.schema->name);
  return shape.Product(axis, shape.rank());
}

bool AcceptsNormalize(const OpCall& call, std::string* why) {
  if (!AcceptsFloat(call, why)) return false;
  for (size_t i = 1; i < call.out.size(); ++i) {
    if (call.has_out(i)) {
      *why = "mean or deviation are asked for";
      return false;
    }
  }
  const int64_t length = RowLength(call);
  for (size_t i = 1; i <= 2; ++i) {
    if (call.has(i) && call.x(i).elements() != length) {
      *why = fmt::format("input {} is {}, not the {} elements of a row", i,
                         ToString(call.x(i).shape()), length);
      return false;
    }
  }
  return true;
}

template <bool kCentered>
void RunNormalize(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  static const NormalizeFunction normalize = FindNormalizeRow();
  if (call.y(0).elements() == 0) return;
  const int64_t length = RowLength(call);
  const NormalizeRow how{.scale = call.x(1).data<float>(),
                         .bias = call.has(2) ? call.x(2).data<float>() : nullptr,
                         .epsilon = static_cast<float>(call.attrs().Float("epsilon", 1e-5)),
                         .centered = kCentered};
  const float* x = call.x(0).data<float>();
  float* y = call.y(0).data<float>();
  ParallelFor(call.y(0).elements() / length, 1 + 32768 / length, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) normalize(x + r * length, length, how, y + r * length);
  });
}

// One factor and one addend for each channel, folded when the plan is made.
class BatchState final : public KernelState {
 public:
  explicit BatchState(const OpCall& call)
      : channels_(call.x(1).elements()), factors_(Folded(call)) {
    const std::array<ChainStep, 2> steps = {ChainStep{.op = StepOp::kMul, .operand = 1},
                                            ChainStep{.op = StepOp::kAdd, .operand = 2}};
    steps_ = BindSteps(steps);
    grain_ = ElementwiseGrain(steps_);
    plan_ = Plan(call);
    planned_ = call.y(0);
  }
  size_t bytes() const override { return factors_.size() * sizeof(float); }

  void Run(const OpCall& call) const {
    const std::array<const float*, 3> operands = {call.x(0).data<float>(), factors_.data(),
                                                  factors_.data() + channels_};
    const Tensor& y = call.y(0);
    const bool planned = planned_.shape() == y.shape() && planned_.layout() == y.layout();
    RunElementwise(planned ? plan_ : Plan(call), steps_, grain_, operands, call.y(0).data<float>());
  }

 private:
  static std::vector<float> Folded(const OpCall& call) {
    const double epsilon = call.attrs().Float("epsilon", 1e-5);
    const int64_t channels = call.x(1).elements();
    std::vector<float> factors(static_cast<size_t>(2 * channels));
    for (int64_t c = 0; c < channels; ++c) {
      const double factor =
          ElementAsDouble(call.x(1), c) / std::sqrt(ElementAsDouble(call.x(4), c) + epsilon);
      factors[static_cast<size_t>(c)] = static_cast<float>(factor);
      factors[static_cast<size_t>(channels + c)] = static_cast<float>(
          ElementAsDouble(call.x(2), c) - ElementAsDouble(call.x(3), c) * factor);
    }
    return factors;
  }
  ElementwisePlan Plan(const OpCall& call) const {
    const int rank = call.x(0).shape().rank();
    std::array<int64_t, kMaxRank> dims{};
    dims.fill(1);
    dims[0] = channels_;  // [channels, 1, 1]
    const size_t length = rank < 2 ? 1 : static_cast<size_t>(rank - 1);
    const Tensor channel =
        Tensor::Described(DType::kFloat, Shape(std::span<const int64_t>(dims.data(), length)));
    const std::array<const Tensor*, 3> operands = {&call.x(0), &channel, &channel};
    return PlanElementwise(call.y(0), operands);
  }

  int64_t channels_;
  std::vector<float> factors_;  // factors, then addends
  std::vector<BoundStep> steps_;
  int64_t grain_ = 0;
  ElementwisePlan plan_;
  Tensor planned_;
};

bool AcceptsBatch(const OpCall& call, std::string* why) {
  if (call.x(0).dtype() != DType::kFloat) {
    *why = fmt::format("type {} is not float32", DTypeName(call.x(0).dtype()));
    return false;
  }
  if (call.attrs().Int("training_mode", 0) != 0) {
    *why = "training mode takes its statistics from the batch";
    return false;
  }
  for (size_t i = 1; i < 5; ++i) {
    if (!call.constant(i)) {
      *why = "scale, bias, mean and variance are not constant";
      return false;
    }
  }
  return true;
}

std::unique_ptr<KernelState> PrepareBatch(const OpCall& call) {
  return std::make_unique<BatchState>(call);
}

void RunBatch(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  static_cast<const BatchState*>(call.state)->Run(call);
}

WHIMBREL_REGISTER(Kernel{.op = "Softmax",
                         .name = "highway",
                         .rank = 50,
                         .layout = LayoutRule::kFollow,
                         .in_place = 1,
                         .accepts = AcceptsSoftmax,
                         .run = RunSoftmax<false>});
WHIMBREL_REGISTER(Kernel{.op = "LogSoftmax",
                         .name = "highway",
                         .rank = 50,
                         .layout = LayoutRule::kFollow,
                         .in_place = 1,
                         .accepts = AcceptsSoftmax,
                         .run = RunSoftmax<true>});
WHIMBREL_REGISTER(Kernel{.op = "LayerNormalization",
                         .name = "highway",
                         .rank = 50,
                         .in_place = 1,
                         .accepts = AcceptsNormalize,
                         .run = RunNormalize<true>});
WHIMBREL_REGISTER(Kernel{.op = "RMSNormalization",
                         .name = "highway",
                         .rank = 50,
                         .in_place = 1,
                         .accepts = AcceptsNormalize,
                         .run = RunNormalize<false>});
WHIMBREL_REGISTER(Kernel{.op = "BatchNormalization",
                         .name = "highway",
                         .rank = 50,
                         .layout = LayoutRule::kFollow,
                         .in_place = 1,
                         .accepts = AcceptsBatch,
                         .prepare = PrepareBatch,
                         .run = RunBatch});

}  // namespace
}  // namespace whimbrel
