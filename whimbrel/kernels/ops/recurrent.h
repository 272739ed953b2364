// recurrent: what LSTM, GRU and RNN share: directions, shapes, and the walk over steps.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "whimbrel/kernels/ops/check_dims.h"
#include "whimbrel/kernels/ops/rnn_activation.h"
#include "whimbrel/kernels/ops/widen.h"

namespace whimbrel {

struct RnnDirection {
  int count = 1;
  bool first_reversed = false;
};
RnnDirection ReadRnnDirection(std::string_view op, const Attributes& attributes);

struct RnnSizes {
  int64_t seq, batch, input, hidden, dirs;
  bool batch_first;

  int64_t StateAt(int64_t dir, int64_t entry) const {
    return (batch_first ? entry * dirs + dir : dir * batch + entry) * hidden;
  }
  int64_t InputAt(int64_t step, int64_t entry) const {
    return (batch_first ? entry * seq + step : step * batch + entry) * input;
  }
  int64_t OutputAt(int64_t step, int64_t dir, int64_t entry) const {
    return (batch_first ? (entry * seq + step) * dirs + dir : (step * dirs + dir) * batch + entry) *
           hidden;
  }
};

// Inputs that all recurrent ops have in common.
enum RnnInput : size_t { kRnnX, kRnnW, kRnnR, kRnnB, kRnnLengths, kRnnH };

// Of a call whose R is [dirs, gates * hidden, hidden].
RnnSizes RnnSizesOf(const OpCall& call);
Cost RnnCost(const OpCall& call, int gates);

// Checks the attributes and inputs X to initial_h, sets Y and Y_h.
struct RnnShapes {
  Dim dirs, hidden;
  Dims state;  // of Y_h
};
RnnShapes InferRnn(InferContext& c, int gates, std::span<const RnnFunction> functions);

// Steps of batch entry `entry`.
int64_t RnnSteps(const OpCall& call, const RnnSizes& s, int64_t entry);
// kInvalidData when sequence_lens has a number of steps that there are not.
void CheckRnnLengths(const OpCall& call, const RnnSizes& s);

// Formals X, W, R, B, sequence_lens, initial_h; attributes up to layout.
std::vector<Formal> RnnInputs(TypeMask types);
std::vector<AttributeSpec> RnnAttributes(int since, std::string_view default_functions);

// Scratch of RunRnn with `doubles` for each batch entry and direction.
size_t RnnWorkspace(const OpCall& call, int64_t doubles);

template <typename R, typename S>
double RnnDot(const R* a, const S* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

template <typename T>
struct LstmWeights {             // of one direction
  const T* bias = nullptr;       // [8 hidden], optional
  const T* peepholes = nullptr;  // [3 hidden], optional
  std::array<RnnActivation, 3> functions{};
  double clip = 0;
  bool coupled = false;  // f = 1 - i
};
// Inputs that LSTM has behind the common ones.
enum LstmInput : size_t { kLstmC = kRnnH + 1, kLstmPeepholes };
constexpr std::array<RnnFunction, 3> kLstmFunctions{RnnFunction::kSigmoid, RnnFunction::kTanh,
                                                    RnnFunction::kTanh};

// The value bounded by the attribute clip; 0 = unbounded.
inline double RnnClip(double x, double clip) {
  return clip > 0 ? (x < -clip ? -clip : (x > clip ? clip : x)) : x;
}

template <typename T>
void StoreRnn(const OpCall& call, size_t output, int64_t at, const double* from, int64_t count) {
  if (!call.has_out(output)) return;
  T* to = call.y(output).template data<T>() + at;
  for (int64_t i = 0; i < count; ++i) to[i] = from == nullptr ? T{} : Narrow<T>(from[i]);
}

// Elements of an optional input from `at` on; nullptr when it is left out.
template <typename T>
const T* RnnOptional(const OpCall& call, size_t input, int64_t at) {
  return call.has(input) ? call.x(input).template data<T>() + at : nullptr;
}

template <typename T>
LstmWeights<T> LstmWeightsOf(const OpCall& call, int64_t dir, int64_t dirs, int64_t hidden) {
  LstmWeights<T> w;
  w.bias = RnnOptional<T>(call, kRnnB, dir * 8 * hidden);
  w.peepholes = RnnOptional<T>(call, kLstmPeepholes, dir * 3 * hidden);
  std::array<RnnActivation, 6> all;
  ReadRnnActivations(call.schema->name, call.attrs(), kLstmFunctions,
                     std::span(all).first(static_cast<size_t>(dirs) * 3));
  std::copy_n(all.begin() + 3 * dir, 3, w.functions.begin());
  w.clip = call.attrs().Float("clip", 0);
  w.coupled = call.attrs().Int("input_forget", 0) != 0;
  return w;
}

// One step from the products x W + h R, [4 hidden] in the order i, o, f, c.
template <typename T>
void LstmStep(const LstmWeights<T>& w, const double* products, int64_t hidden, double* h,
              double* c) {
  const auto sum = [&](int64_t gate, int64_t i) {
    const int64_t row = gate * hidden + i;
    const double bias =
        w.bias == nullptr ? 0 : Widen(w.bias[row]) + Widen(w.bias[4 * hidden + row]);
    return products[row] + bias;
  };
  const auto peep = [&](int64_t gate, int64_t i) {
    return w.peepholes == nullptr ? 0 : Widen(w.peepholes[gate * hidden + i]) * c[i];
  };
  for (int64_t i = 0; i < hidden; ++i) {
    const double in = w.functions[0](RnnClip(sum(0, i) + peep(0, i), w.clip));
    const double forget =
        w.coupled ? 1 - in : w.functions[0](RnnClip(sum(2, i) + peep(2, i), w.clip));
    const double candidate = w.functions[1](RnnClip(sum(3, i), w.clip));
    c[i] = forget * c[i] + in * candidate;
    const double out = w.functions[0](RnnClip(sum(1, i) + peep(1, i), w.clip));
    h[i] = out * w.functions[2](c[i]);
  }
}

// Runs one cell for each direction and batch entry. Cell: made of (call, sizes, dir, w, r,
// scratch) with w and r those of its direction; Start(state offset), Step(x), h(), and
// Finish(state offset) for further outputs.
template <typename T, typename Cell>
void RunRnn(const OpCall& call, std::span<std::byte> workspace, int64_t doubles) {
  const RnnSizes s = RnnSizesOf(call);
  CheckRnnLengths(call, s);
  const RnnDirection direction = ReadRnnDirection(call.schema->name, call.attrs());
  const auto* x = WidenInput<T>(call.x(kRnnX), workspace);
  const auto* w = WidenInput<T>(call.x(kRnnW), workspace);
  const auto* r = WidenInput<T>(call.x(kRnnR), workspace);
  const int64_t w_size = call.x(kRnnW).elements() / s.dirs,
                r_size = call.x(kRnnR).elements() / s.dirs;
  auto* const scratch = static_cast<double*>(static_cast<void*>(workspace.data()));
  ParallelFor(s.dirs * s.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t dir = task / s.batch, entry = task % s.batch;
      const bool reversed = direction.first_reversed || dir == 1;
      const int64_t steps = RnnSteps(call, s, entry), state = s.StateAt(dir, entry);
      Cell cell(call, s, dir, w + dir * w_size, r + dir * r_size, scratch + task * doubles);
      cell.Start(state);
      for (int64_t i = 0; i < steps; ++i) {
        const int64_t step = reversed ? steps - 1 - i : i;
        cell.Step(x + s.InputAt(step, entry));
        StoreRnn<T>(call, 0, s.OutputAt(step, dir, entry), cell.h(), s.hidden);
      }
      for (int64_t step = steps; step < s.seq; ++step) {
        StoreRnn<T>(call, 0, s.OutputAt(step, dir, entry), nullptr, s.hidden);
      }
      StoreRnn<T>(call, 1, state, cell.h(), s.hidden);
      cell.Finish(state);
    }
  });
}

}  // namespace whimbrel
