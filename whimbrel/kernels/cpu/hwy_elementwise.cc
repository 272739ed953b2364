// Elementwise execution: operands are resolved per tile, steps run on a tile that stays in L1.

#include "whimbrel/kernels/cpu/hwy_elementwise.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "whimbrel/base/threads.h"

namespace whimbrel {
namespace {

// 4 KiB: an accumulator tile and the eight operands at most stay within 48 KiB of L1. Shorter tiles
// pay the call of a step (about 3 ns) too often.
constexpr int64_t kTile = 1024;

constexpr std::array<size_t, kMaxChainInputs> kInOrder = {0, 1, 2, 3, 4, 5, 6, 7};

// Strides of the logical dims of `t` (not of memory order).
std::array<int64_t, kMaxRank> LogicalStrides(const Tensor& t) {
  const Shape& shape = t.shape();
  if (t.layout() == Layout::kPlain || shape.rank() < 3) return shape.Strides();
  std::array<int64_t, kMaxRank> strides{};
  const int rank = shape.rank();
  int64_t stride = shape[1];
  strides[1] = 1;
  for (int d = rank - 1; d >= 2; --d) {
    strides[static_cast<size_t>(d)] = stride;
    stride *= shape[d];
  }
  strides[0] = stride;
  return strides;
}

// One operand while tiles go by.
struct Cursor {
  const float* base = nullptr;
  const int64_t* strides = nullptr;
  int64_t held_offset = -1;  // what `tile` holds: rows of the run that starts here
  int64_t held_rows = 0;
  float* tile = nullptr;
};

class TileRunner {
 public:
  TileRunner(const ElementwisePlan& plan, std::span<const BoundStep> steps,
             std::span<const float* const> operands, float* out, float* scratch)
      : plan_(plan), steps_(steps), out_(out), accumulator_(scratch) {
    for (size_t k = 0; k < plan.operands; ++k) {
      cursors_[k] = {.base = operands[k],
                     .strides = plan.strides[k].data(),
                     .tile = scratch + (k + 1) * kTile};
    }
  }

  void Run(int64_t begin, int64_t end) {
    if (plan_.rank == 1) {
      // without an accumulator tile there is no reason to stop
      const int64_t longest = steps_.size() == 1 && plan_.strides[0][0] == 1 ? end : kTile;
      for (int64_t i = begin; i < end;) {
        const int64_t count = std::min(longest, end - i);
        RunRow(i, 0, {}, i, count);
        i += count;
      }
      return;
    }
    const int64_t columns = plan_.dims[Last()];
    const int64_t rows = plan_.dims[Last() - 1];
    // Blocks of rows need a fair number of elements to be worth their set-up.
    const bool blocks = plan_.rank == 2 || columns * rows >= kTile / 4;
    for (int64_t i = begin; i < end;) {
      std::array<int64_t, kMaxRank> at{};
      int64_t rest = i;
      for (size_t d = static_cast<size_t>(plan_.rank); d-- > 0;) {
        at[d] = rest % plan_.dims[d];
        rest /= plan_.dims[d];
      }
      const int64_t column = at[Last()];
      int64_t count = std::min({kTile, end - i, columns - column});
      if (column == 0 && count == columns && columns <= kTile / 2) {
        if (blocks) {
          const int64_t block =
              std::min({kTile / columns, rows - at[Last() - 1], (end - i) / columns});
          count = block * columns;
          RunRows(i, at, block, columns);
        } else {
          count = std::min(kTile, end - i);
          RunAny(i, at, count);
        }
      } else {
        RunRow(i, Last(), at, column, count);
      }
      i += count;
    }
  }

 private:
  size_t Last() const { return static_cast<size_t>(plan_.rank) - 1; }

  // Offset of an operand at `at`, dims [0, dims) only.
  static int64_t Offset(const Cursor& c, const std::array<int64_t, kMaxRank>& at, size_t dims) {
    int64_t offset = 0;
    for (size_t d = 0; d < dims; ++d) offset += at[d] * c.strides[d];
    return offset;
  }

  // A part of one row: operands are runs, numbers or (rarely) strided.
  void RunRow(int64_t i, size_t last, const std::array<int64_t, kMaxRank>& at, int64_t column,
              int64_t count) {
    for (size_t k = 0; k < plan_.operands; ++k) {
      Cursor& c = cursors_[k];
      const int64_t stride = c.strides[last];
      const float* from = c.base + Offset(c, at, last) + column * stride;
      if (stride == 1) {
        resolved_[k] = {.data = from};
      } else if (stride == 0) {
        resolved_[k] = {.scalar = *from};
      } else {
        for (int64_t j = 0; j < count; ++j) c.tile[j] = from[j * stride];
        c.held_rows = 0;
        resolved_[k] = {.data = c.tile};
      }
    }
    Execute(i, count);
  }

  // Whole rows of one block.
  void RunRows(int64_t i, const std::array<int64_t, kMaxRank>& at, int64_t rows, int64_t columns) {
    for (size_t k = 0; k < plan_.operands; ++k) {
      Cursor& c = cursors_[k];
      const int64_t stride = c.strides[Last()];
      const int64_t row_stride = c.strides[Last() - 1];
      const int64_t offset = Offset(c, at, Last());
      const float* from = c.base + offset;
      if (stride == 0 && row_stride == 0) {
        resolved_[k] = {.scalar = *from};
        continue;
      }
      if (stride == 1 && (row_stride == columns || rows == 1)) {
        resolved_[k] = {.data = from};
        continue;
      }
      resolved_[k] = {.data = c.tile};
      if (row_stride == 0) {  // the same row again and again: kept from tile to tile
        if (c.held_offset == offset && c.held_rows >= rows) continue;
        c.held_offset = offset;
        c.held_rows = rows;
      } else {
        c.held_rows = 0;
      }
      for (int64_t r = 0; r < rows; ++r) {
        FillRun(c.tile + r * columns, from + r * row_stride, stride, columns);
      }
    }
    Execute(i, rows * columns);
  }

  // Any run of elements: every operand is written out.
  void RunAny(int64_t i, const std::array<int64_t, kMaxRank>& start, int64_t count) {
    for (size_t k = 0; k < plan_.operands; ++k) {
      Cursor& c = cursors_[k];
      c.held_rows = 0;
      resolved_[k] = {.data = c.tile};
      auto at = start;
      int64_t offset = Offset(c, at, static_cast<size_t>(plan_.rank));
      for (int64_t done = 0; done < count;) {
        const int64_t run = std::min(plan_.dims[Last()] - at[Last()], count - done);
        FillRun(c.tile + done, c.base + offset, c.strides[Last()], run);
        done += run;
        offset += run * c.strides[Last()];
        at[Last()] += run;
        for (size_t d = Last(); d > 0 && at[d] == plan_.dims[d]; --d) {
          offset += c.strides[d - 1] - at[d] * c.strides[d];
          at[d] = 0;
          ++at[d - 1];
        }
      }
    }
    Execute(i, count);
  }

  static void FillRun(float* to, const float* from, int64_t stride, int64_t count) {
    if (stride == 1) {
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
    } else if (stride == 0) {
      FillNumber(to, *from, count);
    } else {
      for (int64_t j = 0; j < count; ++j) to[j] = from[j * stride];
    }
  }

  // By 64 bytes; std::fill_n is not vectorised at -O2 and took 10 ns for a row of 64.
  static void FillNumber(float* to, float value, int64_t count) {
    std::array<float, 16> line;
    line.fill(value);
    int64_t j = 0;
    for (; j + 16 <= count; j += 16) std::memcpy(to + j, line.data(), sizeof(line));
    for (; j < count; ++j) to[j] = value;
  }

  void Execute(int64_t i, int64_t count) {
    const auto n = static_cast<size_t>(count);
    const float* value = resolved_[0].data;
    if (value == nullptr) {
      FillNumber(cursors_[0].tile, resolved_[0].scalar, count);
      value = cursors_[0].tile;
      cursors_[0].held_rows = 0;
    }
    for (size_t s = 0; s < steps_.size(); ++s) {
      const BoundStep& bound = steps_[s];
      const StepOperand operand = bound.step.operand < 0
                                      ? StepOperand{.scalar = static_cast<float>(bound.step.a)}
                                      : resolved_[static_cast<size_t>(bound.step.operand)];
      float* to = s + 1 == steps_.size() ? out_ + i : accumulator_;
      bound.run(bound.step, value, operand, to, n);
      value = to;
    }
  }

  const ElementwisePlan& plan_;
  std::span<const BoundStep> steps_;
  float* out_;
  float* accumulator_;
  std::array<Cursor, kMaxChainInputs> cursors_{};
  std::array<StepOperand, kMaxChainInputs> resolved_{};
};

}  // namespace

ElementwisePlan PlanElementwise(const Tensor& out, std::span<const Tensor* const> operands) {
  WHIMBREL_CHECK(!operands.empty() && operands.size() <= kMaxChainInputs);
  const int rank = out.shape().rank();
  std::array<int, kMaxRank> order{};
  for (int d = 0; d < rank; ++d) order[static_cast<size_t>(d)] = d;
  if (out.layout() == Layout::kChannelsLast && rank >= 3) {
    std::rotate(order.begin() + 1, order.begin() + 2, order.begin() + rank);
  }
  ElementwisePlan plan;
  plan.elements = out.elements();
  plan.operands = operands.size();
  std::array<std::array<int64_t, kMaxRank>, kMaxChainInputs> logical{};
  for (size_t k = 0; k < operands.size(); ++k) logical[k] = LogicalStrides(*operands[k]);
  const auto stride_of = [&](size_t k, int d) -> int64_t {
    const Shape& shape = operands[k]->shape();
    const int own = d - (rank - shape.rank());
    return own < 0 || shape[own] == 1 ? 0 : logical[k][static_cast<size_t>(own)];
  };
  size_t kept = 0;
  for (int j = 0; j < rank; ++j) {
    const int d = order[static_cast<size_t>(j)];
    const int64_t dim = out.shape()[d];
    if (dim == 1) continue;
    bool merges = kept > 0;
    for (size_t k = 0; k < operands.size() && merges; ++k) {
      merges = plan.strides[k][kept - 1] == stride_of(k, d) * dim;
    }
    if (merges) {
      plan.dims[kept - 1] *= dim;
    } else {
      plan.dims[kept++] = dim;
    }
    for (size_t k = 0; k < operands.size(); ++k) plan.strides[k][kept - 1] = stride_of(k, d);
  }
  if (kept == 0) plan.dims[kept++] = 1;
  plan.rank = static_cast<int>(kept);
  return plan;
}

std::vector<BoundStep> BindSteps(std::span<const ChainStep> steps) {
  std::vector<BoundStep> bound;
  for (const ChainStep& step : steps) bound.push_back({step, FindStepFunction(step.op)});
  return bound;
}

int64_t ElementwiseGrain(std::span<const BoundStep> steps) {
  int64_t weight = 1;
  for (const BoundStep& bound : steps) weight += StepWeight(bound.step.op);
  // About 5 us a part: 128 Ki additions out of L2, 32 Ki sigmoids.
  return std::max<int64_t>(4096, 262144 / weight);
}

void RunElementwise(const ElementwisePlan& plan, std::span<const BoundStep> steps, int64_t grain,
                    std::span<const float* const> operands, float* out) {
  ParallelFor(plan.elements, grain, [&](int64_t begin, int64_t end) {
    alignas(
        64) float scratch[(kMaxChainInputs + 1) * kTile];  // left unset: tiles are written first
    TileRunner(plan, steps, operands, out, scratch).Run(begin, end);
  });
}

ElementwiseState::ElementwiseState(std::span<const ChainStep> steps, const OpCall& call,
                                   std::span<const size_t> inputs)
    : steps_(BindSteps(steps)),
      grain_(ElementwiseGrain(steps_)),
      inputs_(inputs.begin(), inputs.end()) {
  std::array<const Tensor*, kMaxChainInputs> tensors{};
  for (size_t i = 0; i < inputs_.size(); ++i) {
    tensors[i] = call.in[inputs_[i]];
    keys_[i] = {tensors[i]->shape(), tensors[i]->layout()};
  }
  keys_[inputs_.size()] = {call.y(0).shape(), call.y(0).layout()};
  plan_ = PlanElementwise(call.y(0), std::span(tensors).first(inputs_.size()));
}

ElementwiseState::ElementwiseState(std::span<const ChainStep> steps, const OpCall& call)
    : ElementwiseState(steps, call, std::span(kInOrder).first(call.in.size())) {}

void ElementwiseState::Run(const OpCall& call) const {
  const auto same = [](const Key& key, const Tensor& t) {
    return key.layout == t.layout() && key.shape == t.shape();
  };
  std::array<const Tensor*, kMaxChainInputs> tensors{};
  std::array<const float*, kMaxChainInputs> operands{};
  bool planned = same(keys_[inputs_.size()], call.y(0));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    tensors[i] = call.in[inputs_[i]];
    operands[i] = tensors[i]->data<float>();
    planned = planned && same(keys_[i], *tensors[i]);
  }
  float* out = call.y(0).data<float>();
  if (planned) {
    RunElementwise(plan_, steps_, grain_, operands, out);
  } else {
    RunElementwise(PlanElementwise(call.y(0), std::span(tensors).first(inputs_.size())), steps_,
                   grain_, operands, out);
  }
}

bool AcceptsElementwise(const OpCall& call, std::string* why) {
  if (call.in.size() > kMaxChainInputs) {
    *why = fmt::format("{} inputs are more than {}", call.in.size(), kMaxChainInputs);
    return false;
  }
  for (const Tensor* t : call.in) {
    if (t != nullptr && t->dtype() != DType::kFloat) {
      *why = fmt::format("type {} is not float32", DTypeName(t->dtype()));
      return false;
    }
  }
  return true;
}

void RunElementwiseCall(const OpCall& call, std::span<std::byte> /*workspace*/,
                        Stream& /*stream*/) {
  static_cast<const ElementwiseState*>(call.state)->Run(call);
}

}  // namespace whimbrel
