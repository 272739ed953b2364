// GRU by oneDNN products: the input projection of all steps at once, then per step a product of the
// state (two when the reset gate scales the state) and a vectorised cell.

#include "whimbrel/kernels/cpu/onednn_common.h"

#if defined(WHIMBREL_WITH_ONEDNN) && WHIMBREL_WITH_ONEDNN

#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "whimbrel/base/threads.h"
#include "whimbrel/kernels/cpu/gru_cell.h"
#include "whimbrel/kernels/cpu/onednn_projection.h"
#include "whimbrel/kernels/ops/recurrent.h"

namespace whimbrel {
namespace {

using onednn::Projection;
using onednn::ScratchPlan;

constexpr std::array<RnnFunction, 2> kFunctions{RnnFunction::kSigmoid, RnnFunction::kTanh};

class GruState final : public onednn::TeamState {
 public:
  explicit GruState(const OpCall& call);
  size_t bytes() const override;
  size_t workspace_bytes() const { return scratch_.bytes(); }
  void Run(const OpCall& call, std::span<std::byte> workspace);

 private:
  void AddDirection(const OpCall& call, int64_t direction);
  void RunDirection(const OpCall& call, int64_t direction, std::span<std::byte> workspace);
  // One step of the whole batch: `input` [batch, 3 hidden], h and next [batch, hidden].
  void Step(size_t direction, const float* input, const float* h, float* next,
            std::span<std::byte> workspace);

  RnnSizes sizes_;
  bool linear_before_reset_, first_reversed_;
  bool project_alone_ = false, step_alone_ = false;  // not worth a second thread
  // One per direction. The state's product has all gates, or z and r with h apart.
  std::vector<Projection> input_, state_, candidate_;
  ScratchPlan scratch_;
  size_t input_at_ = 0, state_at_ = 0, h_at_ = 0, z_at_ = 0, reset_at_ = 0;
};

GruState::GruState(const OpCall& call)
    : sizes_(RnnSizesOf(call)),
      linear_before_reset_(call.attrs().Int("linear_before_reset", 0) != 0),
      first_reversed_(ReadRnnDirection("GRU", call.attrs()).first_reversed) {
  const RnnSizes& s = sizes_;
  const auto flops = [&](int64_t rows, int64_t depth) {
    return 6.0 * static_cast<double>(rows * depth) * static_cast<double>(s.hidden);
  };
  project_alone_ = flops(s.seq * s.batch, s.input) < onednn::kTeamFlops;
  step_alone_ = flops(s.batch, s.hidden) < onednn::kTeamFlops;
  for (int64_t d = 0; d < s.dirs; ++d) AddDirection(call, d);
  const auto floats = [&](int64_t count) {
    return scratch_.Add(static_cast<size_t>(count) * sizeof(float));
  };
  const int64_t state = s.batch * s.hidden;
  input_at_ = floats(s.seq * state * 3);
  state_at_ = floats(state * 3);
  h_at_ = floats(state);
  if (linear_before_reset_) return;
  z_at_ = floats(state);
  reset_at_ = floats(state);
}

void GruState::AddDirection(const OpCall& call, int64_t direction) {
  const RnnSizes& s = sizes_;
  const int64_t gates = 3 * s.hidden;
  const float* const w = call.x(kRnnW).data<float>() + direction * gates * s.input;
  const float* const r = call.x(kRnnR).data<float>() + direction * gates * s.hidden;
  const float* const b = RnnOptional<float>(call, kRnnB, direction * 2 * gates);
  // Both biases of a gate join the input, but that of h which the reset gate scales.
  const int64_t joined = linear_before_reset_ ? 2 * s.hidden : gates;
  std::vector<float> input_bias, state_bias;
  for (int64_t i = 0; b != nullptr && i < gates; ++i) {
    input_bias.push_back(i < joined ? b[i] + b[gates + i] : b[i]);
    state_bias.push_back(i < joined ? 0 : b[gates + i]);
  }
  const auto data = [](const std::vector<float>& v) { return v.empty() ? nullptr : v.data(); };
  {
    const onednn::TeamScope threads(project_alone_);
    input_.emplace_back(s.seq * s.batch, s.input, gates, w, data(input_bias), scratch_);
  }
  const onednn::TeamScope threads(step_alone_);
  if (linear_before_reset_) {
    state_.emplace_back(s.batch, s.hidden, gates, r, data(state_bias), scratch_);
  } else {
    state_.emplace_back(s.batch, s.hidden, 2 * s.hidden, r, nullptr, scratch_);
    candidate_.emplace_back(s.batch, s.hidden, s.hidden, r + 2 * s.hidden * s.hidden, nullptr,
                            scratch_);
  }
}

size_t GruState::bytes() const {
  size_t bytes = 0;
  for (const auto* projections : {&input_, &state_, &candidate_}) {
    for (const Projection& p : *projections) bytes += p.bytes();
  }
  return bytes;
}

void GruState::Run(const OpCall& call, std::span<std::byte> workspace) {
  for (int64_t d = 0; d < sizes_.dirs; ++d) RunDirection(call, d, workspace);
}

void GruState::Step(size_t direction, const float* input, const float* h, float* next,
                    std::span<std::byte> workspace) {
  const int64_t hidden = sizes_.hidden, grain = 8192 / hidden + 1;
  auto* const sums = static_cast<float*>(onednn::At(workspace, state_at_));
  state_[direction].Run(h, sums, workspace);
  if (linear_before_reset_) {
    ParallelFor(sizes_.batch, grain, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        GruCell(input + b * 3 * hidden, sums + b * 3 * hidden, hidden, h + b * hidden,
                next + b * hidden);
      }
    });
    return;
  }
  auto* const z = static_cast<float*>(onednn::At(workspace, z_at_));
  auto* const reset = static_cast<float*>(onednn::At(workspace, reset_at_));
  ParallelFor(sizes_.batch, grain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      GruGates(input + b * 3 * hidden, sums + b * 2 * hidden, hidden, h + b * hidden,
               z + b * hidden, reset + b * hidden);
    }
  });
  candidate_[direction].Run(reset, sums, workspace);
  ParallelFor(sizes_.batch, grain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      GruMix(input + b * 3 * hidden + 2 * hidden, sums + b * hidden, hidden, z + b * hidden,
             h + b * hidden, next + b * hidden);
    }
  });
}

void GruState::RunDirection(const OpCall& call, int64_t direction, std::span<std::byte> workspace) {
  const RnnSizes& s = sizes_;
  const auto at = static_cast<size_t>(direction);
  const int64_t state = s.batch * s.hidden;
  const size_t state_bytes = static_cast<size_t>(state) * sizeof(float);
  auto* const input = static_cast<float*>(onednn::At(workspace, input_at_));
  auto* const own = static_cast<float*>(onednn::At(workspace, h_at_));
  {
    const onednn::TeamScope threads(project_alone_);
    input_[at].Run(call.x(kRnnX).data<float>(), input, workspace);
  }
  if (call.has(kRnnH)) {
    std::memcpy(own, call.x(kRnnH).data<float>() + direction * state, state_bytes);
  } else {
    std::memset(own, 0, state_bytes);
  }
  const float* h = own;
  const onednn::TeamScope threads(step_alone_);
  const bool reversed = first_reversed_ || direction == 1;
  for (int64_t i = 0; i < s.seq; ++i) {
    const int64_t step = reversed ? s.seq - 1 - i : i;
    float* const next =
        call.has_out(0) ? call.y(0).data<float>() + s.OutputAt(step, direction, 0) : own;
    Step(at, input + step * state * 3, h, next, workspace);
    h = next;
  }
  if (call.has_out(1)) std::memcpy(call.y(1).data<float>() + direction * state, h, state_bytes);
}

bool DefaultActivations(const OpCall& call) {
  std::array<RnnActivation, 4> activations;
  const auto used = static_cast<size_t>(RnnSizesOf(call).dirs) * 2;
  ReadRnnActivations("GRU", call.attrs(), kFunctions, std::span(activations).first(used));
  for (size_t i = 0; i < used; ++i) {
    if (activations[i].function != kFunctions[i % 2]) return false;
  }
  return true;
}

std::string Obstacle(const OpCall& call) {
  if (call.x(kRnnX).dtype() != DType::kFloat) {
    return fmt::format("type {} is not f32", DTypeName(call.x(kRnnX).dtype()));
  }
  if (!call.constant(kRnnW) || !call.constant(kRnnR)) return "W or R is not constant";
  if (call.has(kRnnB) && !call.constant(kRnnB)) return "B is not constant";
  if (call.has(kRnnLengths)) return "sequence lengths are given";
  if (call.attrs().Float("clip", 0) != 0) return "attribute clip is set";
  if (call.attrs().Int("layout", 0) != 0) return "the batch comes first (layout 1)";
  if (!DefaultActivations(call)) return "activations are not Sigmoid, Tanh";
  for (size_t i = 0; i < call.in.size(); ++i) {
    if (call.has(i) && call.x(i).elements() == 0) return "a tensor has no elements";
  }
  return "";
}

bool Accepts(const OpCall& call, std::string* why) {
  *why = Obstacle(call);
  return why->empty();
}

std::unique_ptr<KernelState> Prepare(const OpCall& call) {
  return onednn::Guarded("GRU", [&] { return std::make_unique<GruState>(call); });
}

size_t Workspace(const OpCall& call) {
  return static_cast<const GruState*>(call.state)->workspace_bytes();
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  onednn::RunState<GruState>(call, workspace);
}

WHIMBREL_REGISTER(Kernel{.op = "GRU",
                         .name = "onednn",
                         .rank = 100,
                         .isa = Isa::kAvx2,
                         .accepts = Accepts,
                         .workspace = Workspace,
                         .prepare = Prepare,
                         .run = Run});

}  // namespace
}  // namespace whimbrel

#endif
