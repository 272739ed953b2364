// Widen: 16-bit inputs as float in scratch memory, so that references of matrix ops loop over float
// and double only.

#pragma once

#include <cstdint>
#include <type_traits>

#include "whimbrel/kernels/reference.h"

namespace whimbrel {

// What elements of type T are read as: float for the 16-bit types (exact), else T.
template <typename T>
using ReadAs = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

// Scratch bytes that WidenInput takes for this tensor.
inline size_t WidenedBytes(const Tensor& t) {
  if (ItemSize(t.dtype()) != 2 || !IsFloating(t.dtype())) return 0;
  return (static_cast<size_t>(t.elements()) * sizeof(float) + 63) / 64 * 64;
}

// The tensor's elements as ReadAs<T>; 16-bit ones are converted to the front of `workspace`, which
// shrinks.
template <typename T>
const ReadAs<T>* WidenInput(const Tensor& t, std::span<std::byte>& workspace) {
  if constexpr (std::is_same_v<T, ReadAs<T>>) {
    return t.data<T>();
  } else {
    const size_t bytes = WidenedBytes(t);
    WHIMBREL_CHECK(workspace.size() >= bytes);
    auto* const wide = static_cast<float*>(static_cast<void*>(workspace.data()));
    workspace = workspace.subspan(bytes);
    const T* from = t.data<T>();
    ParallelFor(t.elements(), 16384, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) wide[i] = static_cast<float>(from[i]);
    });
    return wide;
  }
}

}  // namespace whimbrel
