// onednn_common: what the oneDNN kernels share: engine, primitives with a fixed argument list,
// scratch memory, post-ops. Only onednn_* files include this; oneDNN 2.6 (v2 API).

#pragma once

#if defined(WHIMBREL_WITH_ONEDNN) && WHIMBREL_WITH_ONEDNN

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "whimbrel/base/threads.h"
#include "whimbrel/kernels/kernels.h"
#include "whimbrel/kernels/ops/activation.h"

#if DNNL_VERSION_MAJOR != 2
#error "onednn_* files are written for the v2 API; v3 has other constructors and post-op signatures"
#endif

namespace whimbrel::onednn {

// The process's CPU engine; the first call caps oneDNN by ActiveIsa().
const dnnl::engine& Engine();

// Runs fn and turns a dnnl::error into an Error that names the op.
template <typename F>
auto Guarded(std::string_view op, F&& fn) -> decltype(fn()) {
  try {
    return fn();
  } catch (const dnnl::error& e) {
    throw Error(Code::kInternal, std::string(op) + ": oneDNN: " + e.what(), "");
  }
}

// A primitive and its argument list, made once. Memory objects hold no data of their own; Bind
// points them at the call's tensors. Not for two threads at once: one planned call runs on one.
class Primitive {
 public:
  // Throws dnnl::error when the primitive cannot be made.
  void Create(const dnnl::primitive& primitive);
  // An argument bound per run / one that keeps its memory. Gives the slot for Bind.
  size_t AddArgument(int argument, const dnnl::memory::desc& desc);
  void AddFixed(int argument, const dnnl::memory& memory);
  void Bind(size_t slot, const void* data);
  // On the calling thread's OpenMP team. Throws Error.
  void Run() const;
  bool defined() const { return static_cast<bool>(primitive_); }

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> memories_;  // keeps what arguments_ points at
  std::vector<dnnl_exec_arg_t> arguments_;
};

// Work below this runs on the calling thread alone: 2 MFLOP take 8 us on one core, waking a second
// thread takes from 2 us (still spinning) to 50.
constexpr double kTeamFlops = 2e6;

// While it lives, the calling thread's team is itself only (when `alone`) or what it was.
// Primitives are shaped by the team that makes them, so hold one with the same `alone` when making
// and when running.
class TeamScope {
 public:
  explicit TeamScope(bool alone);
  ~TeamScope();
  TeamScope(const TeamScope&) = delete;
  TeamScope& operator=(const TeamScope&) = delete;

 private:
  int before_;
  bool alone_;
};

// What the kernels' states share: the team that their primitives are shaped for.
class TeamState : public KernelState {
 public:
  int team = compute_threads();
};

// `run` of a kernel: State(call), workspace_bytes(), Run(call, workspace). A state planned on a
// thread with another team is made anew on the first run (once; plan on the stream and it never
// happens).
template <typename State>
void RunState(const OpCall& call, std::span<std::byte> workspace) {
  Guarded(call.schema->name, [&] {
    auto& state = *static_cast<State*>(call.state);
    if (state.team != compute_threads()) {
      State again(call);
      if (again.workspace_bytes() <= workspace.size()) state = std::move(again);
      state.team = compute_threads();
    }
    state.Run(call, workspace);
  });
}

// Pieces of one scratch buffer, each on a cache line. Add while planning, At while running.
class ScratchPlan {
 public:
  size_t Add(size_t bytes);  // offset
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};
inline void* At(std::span<std::byte> workspace, size_t offset) {
  return workspace.data() + offset;
}

// With scratch memory left to the caller, as every primitive here has it.
dnnl::primitive_attr UserScratch(const dnnl::post_ops& post_ops);

// Shape and layout (plain or channels-last) of a tensor of rank 3 to 5, as f32.
dnnl::memory::desc ActivationDesc(const Tensor& tensor);
dnnl::memory::dims DimsOf(const Shape& shape);
// Row-major f32.
dnnl::memory::desc DenseDesc(const dnnl::memory::dims& dims);

// A copy of `data` (dense, described by `from`) in the form `to`; on the calling thread.
dnnl::memory Reordered(const dnnl::memory::desc& from, const void* data,
                       const dnnl::memory::desc& to);

// True when the activation can follow a primitive's sum; PRelu with its slope tensor cannot (no
// optimised primitive of 2.6 takes it): the kernel applies it in a pass of its own.
bool AppendActivation(dnnl::post_ops& post_ops, const Activation& activation);
// y[r, c] < 0 ? slope[c] * y[r, c] : y[r, c] for f32 rows; slope: f32 [cols] or one value.
void ApplySlope(const Tensor& slope, float* y, int64_t rows, int64_t cols);
// Reasons against an activation in words; empty when fine.
std::string ActivationObstacle(const Activation& activation);

// Element types of the oneDNN kernels: f32, and f16 / bf16 through f32 copies in scratch memory.
constexpr TypeMask kTypes =
    TypeBit(DType::kFloat) | TypeBit(DType::kFloat16) | TypeBit(DType::kBFloat16);
constexpr bool IsHalfWidth(DType t) {
  return t == DType::kFloat16 || t == DType::kBFloat16;
}

// f32 copy of a constant f32 / f16 / bf16 tensor with plain layout.
std::vector<float> FloatValues(const Tensor& tensor);

}  // namespace whimbrel::onednn

#endif
