// LSTM by oneDNN products: the input projection of all steps at once, then per step a product of
// the state and one vectorised cell.
//
// oneDNN's own lstm primitive wants its own gate order and layouts for state; with one step of 128
// units (silero) the work is 0.26 MFLOP, and reorders would cost as much.

#include "whimbrel/kernels/cpu/onednn_common.h"

#if defined(WHIMBREL_WITH_ONEDNN) && WHIMBREL_WITH_ONEDNN

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "whimbrel/base/threads.h"
#include "whimbrel/kernels/cpu/lstm_cell.h"

namespace whimbrel {
namespace {

using dnnl::memory;
using onednn::Primitive;
using onednn::ScratchPlan;

// ONNX's inputs and outputs
constexpr size_t kX = 0, kW = 1, kR = 2, kB = 3, kLengths = 4, kInitialH = 5, kInitialC = 6,
                 kPeephole = 7;
constexpr size_t kY = 0, kYh = 1, kYc = 2;

struct Sizes {
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0, directions = 1;
  bool reverse_only = false;

  int64_t state() const { return batch * hidden; }
  double flops() const {
    return 8.0 * static_cast<double>(directions * steps) * static_cast<double>(batch * hidden) *
           static_cast<double>(inputs + hidden);
  }
};

Sizes SizesOf(const OpCall& call) {
  const Shape& x = call.x(kX).shape();
  const Shape& r = call.x(kR).shape();
  return {.steps = x[0],
          .batch = x[1],
          .inputs = x[2],
          .hidden = r[2],
          .directions = r[0],
          .reverse_only = call.attrs().String("direction", "forward") == "reverse"};
}

// y [rows, cols] (+)= a [rows, depth] w^T [cols, depth] + bias, w packed.
class Projection {
 public:
  Projection(int64_t rows, int64_t depth, int64_t cols, const float* w, const float* bias, bool add,
             ScratchPlan& scratch);
  void Run(const float* a, float* y, std::span<std::byte> workspace);
  size_t bytes() const { return bytes_; }

 private:
  Primitive primitive_;
  size_t a_ = 0, y_ = 0, scratchpad_ = 0, scratchpad_at_ = 0, bytes_ = 0;
};

Projection::Projection(int64_t rows, int64_t depth, int64_t cols, const float* w, const float* bias,
                       bool add, ScratchPlan& scratch) {
  dnnl::post_ops post_ops;
  if (add) post_ops.append_sum(1);
  const memory::desc a = onednn::DenseDesc({rows, depth});
  const memory::desc packed({depth, cols}, memory::data_type::f32, memory::format_tag::any);
  const memory::desc y = onednn::DenseDesc({rows, cols});
  const memory::desc b = onednn::DenseDesc({1, cols});
  const dnnl::matmul::desc operation =
      bias != nullptr ? dnnl::matmul::desc(a, packed, b, y) : dnnl::matmul::desc(a, packed, y);
  const dnnl::matmul::primitive_desc desc(operation, onednn::UserScratch(post_ops),
                                          onednn::Engine());
  primitive_.Create(dnnl::matmul(desc));
  a_ = primitive_.AddArgument(DNNL_ARG_SRC, desc.src_desc());
  y_ = primitive_.AddArgument(DNNL_ARG_DST, desc.dst_desc());
  scratchpad_ = primitive_.AddArgument(DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc());
  scratchpad_at_ = scratch.Add(desc.scratchpad_desc().get_size());
  const memory::desc transposed({depth, cols}, memory::data_type::f32, memory::dims{1, depth});
  primitive_.AddFixed(DNNL_ARG_WEIGHTS, onednn::Reordered(transposed, w, desc.weights_desc()));
  bytes_ = desc.weights_desc().get_size();
  if (bias != nullptr) {
    primitive_.AddFixed(DNNL_ARG_BIAS, onednn::Reordered(b, bias, desc.bias_desc()));
    bytes_ += desc.bias_desc().get_size();
  }
}

void Projection::Run(const float* a, float* y, std::span<std::byte> workspace) {
  primitive_.Bind(a_, a);
  primitive_.Bind(y_, y);
  primitive_.Bind(scratchpad_, onednn::At(workspace, scratchpad_at_));
  primitive_.Run();
}

class LstmState final : public onednn::TeamState {
 public:
  explicit LstmState(const OpCall& call);
  size_t bytes() const override;
  size_t workspace_bytes() const { return scratch_.bytes(); }
  void Run(const OpCall& call, std::span<std::byte> workspace);

 private:
  void RunDirection(const OpCall& call, int64_t direction, std::span<std::byte> workspace);

  Sizes sizes_;
  bool project_alone_ = false, step_alone_ = false;  // not worth a second thread
  std::vector<Projection> input_, recurrent_;        // one per direction
  ScratchPlan scratch_;
  size_t gates_at_ = 0, h_at_ = 0, c_at_ = 0;
};

LstmState::LstmState(const OpCall& call) : sizes_(SizesOf(call)) {
  const Sizes& s = sizes_;
  const int64_t gates = 4 * s.hidden;
  const auto flops = [&](int64_t rows, int64_t depth) {
    return 2.0 * static_cast<double>(rows * depth) * static_cast<double>(gates);
  };
  project_alone_ = flops(s.steps * s.batch, s.inputs) < onednn::kTeamFlops;
  step_alone_ = flops(s.batch, s.hidden) < onednn::kTeamFlops;
  for (int64_t d = 0; d < s.directions; ++d) {
    std::vector<float> bias;
    if (call.has(kB)) {  // [Wb, Rb]: only their sum counts
      const float* b = call.x(kB).data<float>() + d * 2 * gates;
      for (int64_t i = 0; i < gates; ++i) bias.push_back(b[i] + b[gates + i]);
    }
    {
      const onednn::TeamScope team(project_alone_);
      input_.emplace_back(s.steps * s.batch, s.inputs, gates,
                          call.x(kW).data<float>() + d * gates * s.inputs,
                          bias.empty() ? nullptr : bias.data(), false, scratch_);
    }
    const onednn::TeamScope team(step_alone_);
    recurrent_.emplace_back(s.batch, s.hidden, gates,
                            call.x(kR).data<float>() + d * gates * s.hidden, nullptr, true,
                            scratch_);
  }
  gates_at_ = scratch_.Add(static_cast<size_t>(s.steps * s.batch * gates) * sizeof(float));
  h_at_ = scratch_.Add(static_cast<size_t>(s.state()) * sizeof(float));
  c_at_ = scratch_.Add(static_cast<size_t>(s.state()) * sizeof(float));
}

size_t LstmState::bytes() const {
  size_t bytes = 0;
  for (const Projection& p : input_) bytes += p.bytes();
  for (const Projection& p : recurrent_) bytes += p.bytes();
  return bytes;
}

void LstmState::Run(const OpCall& call, std::span<std::byte> workspace) {
  for (int64_t d = 0; d < sizes_.directions; ++d) RunDirection(call, d, workspace);
}

void LstmState::RunDirection(const OpCall& call, int64_t direction,
                             std::span<std::byte> workspace) {
  const Sizes& s = sizes_;
  const auto at = static_cast<size_t>(direction);
  const int64_t state = s.state(), gates_step = 4 * state;
  const size_t state_bytes = static_cast<size_t>(state) * sizeof(float);
  auto* const gates = static_cast<float*>(onednn::At(workspace, gates_at_));
  auto* const c = static_cast<float*>(onednn::At(workspace, c_at_));
  auto* const own_h = static_cast<float*>(onednn::At(workspace, h_at_));
  float* const y = call.has_out(kY) ? call.y(kY).data<float>() : nullptr;
  {
    const onednn::TeamScope team(project_alone_);
    input_[at].Run(call.x(kX).data<float>(), gates, workspace);
  }
  const auto start = [&](size_t input, float* to) {
    if (call.has(input)) {
      std::memcpy(to, call.x(input).data<float>() + direction * state, state_bytes);
    } else {
      std::memset(to, 0, state_bytes);
    }
  };
  start(kInitialC, c);
  start(kInitialH, own_h);
  const float* h = own_h;
  const onednn::TeamScope team(step_alone_);
  const bool backwards = s.reverse_only || direction == 1;
  for (int64_t i = 0; i < s.steps; ++i) {
    const int64_t t = backwards ? s.steps - 1 - i : i;
    float* const sums = gates + t * gates_step;
    recurrent_[at].Run(h, sums, workspace);
    float* const next = y != nullptr ? y + (t * s.directions + direction) * state : own_h;
    ParallelFor(s.batch, 8192 / s.hidden + 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        LstmCell(sums + b * 4 * s.hidden, s.hidden, c + b * s.hidden, next + b * s.hidden);
      }
    });
    h = next;
  }
  const auto finish = [&](size_t output, const float* from) {
    if (call.has_out(output)) {
      std::memcpy(call.y(output).data<float>() + direction * state, from, state_bytes);
    }
  };
  finish(kYh, h);
  finish(kYc, c);
}

bool DefaultActivations(const OpCall& call) {
  constexpr std::array<std::string_view, 3> kDefault{"sigmoid", "tanh", "tanh"};
  const auto names = call.attrs().Strings("activations");
  for (size_t i = 0; i < names.size(); ++i) {
    std::string lower = names[i];
    for (char& ch : lower) ch = static_cast<char>(ch >= 'A' && ch <= 'Z' ? ch - 'A' + 'a' : ch);
    if (lower != kDefault[i % 3]) return false;
  }
  return true;
}

std::string Obstacle(const OpCall& call) {
  if (call.x(kX).dtype() != DType::kFloat) {
    return fmt::format("type {} is not f32", DTypeName(call.x(kX).dtype()));
  }
  if (!call.constant(kW) || !call.constant(kR)) return "W or R is not constant";
  if (call.has(kB) && !call.constant(kB)) return "B is not constant";
  if (call.has(kLengths)) return "sequence lengths are given";
  if (call.has(kPeephole)) return "peepholes are given";
  if (call.attrs().Has("clip")) return "attribute clip is set";
  if (call.attrs().Int("input_forget", 0) != 0) return "input and forget gate are coupled";
  if (call.attrs().Int("layout", 0) != 0) return "the batch comes first (layout 1)";
  if (!DefaultActivations(call)) return "activations are not Sigmoid, Tanh, Tanh";
  for (size_t i = 0; i < call.in.size(); ++i) {
    if (!call.has(i)) continue;
    if (call.x(i).elements() == 0) return "a tensor has no elements";
    if (call.x(i).layout() != Layout::kPlain) return "a tensor is channels-last";
  }
  return "";
}

bool Accepts(const OpCall& call, std::string* why) {
  *why = Obstacle(call);
  return why->empty();
}

std::unique_ptr<KernelState> Prepare(const OpCall& call) {
  return onednn::Guarded("LSTM", [&] { return std::make_unique<LstmState>(call); });
}

size_t Workspace(const OpCall& call) {
  return static_cast<const LstmState*>(call.state)->workspace_bytes();
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  onednn::RunState<LstmState>(call, workspace);
}

WHIMBREL_REGISTER(Kernel{.op = "LSTM",
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
