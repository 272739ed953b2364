// Reference helpers: element access as double, broadcasting loops, typed dispatch; used by the rank-0 kernels of every op.

#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "whimbrel/base/threads.h"
#include "whimbrel/kernels/kernels.h"

namespace whimbrel {

// Arithmetic type in which a reference computes: double for every float type, the type itself for
// integers (which wrap as ONNX says).
template <typename T>
using WideOf = std::conditional_t<std::is_same_v<T, float> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, double, T>;

template <typename T>
inline WideOf<T> Widen(T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return static_cast<double>(value);
  } else {
    return value;
  }
}
template <typename T>
inline T Narrow(WideOf<T> value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return T(value);
  } else {
    return static_cast<T>(value);
  }
}

// Walks the elements of an output shape and gives the matching offsets of up to N broadcast inputs.
template <int N>
class BroadcastWalk {
 public:
  BroadcastWalk(const Shape& out, const std::array<const Shape*, N>& in);
  // Calls fn(out_index, std::array<int64_t, N> in_index) for out elements [begin, end).
  template <typename F>
  void Run(int64_t begin, int64_t end, F&& fn) const;

 private:
  int rank_ = 0;
  std::array<int64_t, kMaxRank> dims_{};
  std::array<std::array<int64_t, kMaxRank>, N> strides_{};  // 0 where broadcast
};

// Throws kUnsupported naming op and type: for a type that the schema lets through and the kernel has not.
[[noreturn]] void ThrowTypeUnsupported(const OpCall& call, DType type);

// Calls fn.operator()<T>() for types in `mask`, else ThrowTypeUnsupported.
template <TypeMask mask, typename F>
void DispatchReference(const OpCall& call, DType type, F&& fn) {
  bool done = false;
  if ((TypeBit(type) & mask) != 0) {
    DispatchType(type, [&]<typename T>() {
      if constexpr ((TypeBit(kDTypeOf<T>) & mask) != 0) {
        fn.template operator()<T>();
        done = true;
      }
    });
  }
  if (!done) ThrowTypeUnsupported(call, type);
}

// y = f(x) element by element, f on WideOf<T>.
template <TypeMask mask, typename F>
void UnaryReference(const OpCall& call, F f) {
  DispatchReference<mask>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    T* y = call.y(0).data<T>();
    ParallelFor(call.y(0).elements(), 16384, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = Narrow<T>(f(Widen(x[i])));
    });
  });
}

// y = f(a, b) with broadcasting; Out = bool for comparisons, else like T.
template <TypeMask mask, typename Out = void, typename F>
void BinaryReference(const OpCall& call, F f) {
  DispatchReference<mask>(call, call.x(0).dtype(), [&]<typename T>() {
    using R = std::conditional_t<std::is_void_v<Out>, T, Out>;
    const T* a = call.x(0).data<T>();
    const T* b = call.x(1).data<T>();
    R* y = call.y(0).data<R>();
    const BroadcastWalk<2> walk(call.y(0).shape(), {&call.x(0).shape(), &call.x(1).shape()});
    ParallelFor(call.y(0).elements(), 16384, [&](int64_t begin, int64_t end) {
      walk.Run(begin, end, [&](int64_t i, const std::array<int64_t, 2>& at) {
        if constexpr (std::is_void_v<Out>) {
          y[i] = Narrow<T>(f(Widen(a[at[0]]), Widen(b[at[1]])));
        } else {
          y[i] = f(Widen(a[at[0]]), Widen(b[at[1]]));
        }
      });
    });
  });
}

template <int N>
BroadcastWalk<N>::BroadcastWalk(const Shape& out, const std::array<const Shape*, N>& in)
    : rank_(out.rank()) {
  for (int d = 0; d < rank_; ++d) dims_[static_cast<size_t>(d)] = out[d];
  for (size_t k = 0; k < N; ++k) {
    const auto strides = in[k]->Strides();
    const int shift = rank_ - in[k]->rank();
    for (int d = 0; d < in[k]->rank(); ++d) {
      strides_[k][static_cast<size_t>(d + shift)] = (*in[k])[d] == 1 ? 0 : strides[static_cast<size_t>(d)];
    }
  }
}

template <int N>
template <typename F>
void BroadcastWalk<N>::Run(int64_t begin, int64_t end, F&& fn) const {
  if (begin >= end) return;
  std::array<int64_t, kMaxRank> at{};
  std::array<int64_t, N> offset{};
  int64_t rest = begin;
  for (int d = rank_ - 1; d >= 0; --d) {
    const auto i = static_cast<size_t>(d);
    at[i] = rest % dims_[i];
    rest /= dims_[i];
    for (size_t k = 0; k < N; ++k) offset[k] += at[i] * strides_[k][i];
  }
  for (int64_t index = begin; index < end; ++index) {
    fn(index, offset);
    for (int d = rank_ - 1; d >= 0; --d) {
      const auto i = static_cast<size_t>(d);
      for (size_t k = 0; k < N; ++k) offset[k] += strides_[k][i];
      if (++at[i] < dims_[i]) break;
      for (size_t k = 0; k < N; ++k) offset[k] -= strides_[k][i] * dims_[i];
      at[i] = 0;
    }
  }
}

}  // namespace whimbrel
