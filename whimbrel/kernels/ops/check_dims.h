// check_dims: comparing dims that inference may know, half know or not know.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "whimbrel/kernels/infer.h"

namespace whimbrel {

// Both known and not equal.
inline bool Differ(const Dim& a, const Dim& b) {
  return a.known() && b.known() && a.value() != b.value();
}
// The same number of dims, none of which differ.
bool MayEqual(const Dims& a, const Dims& b);
// Fails, naming the input, when it is there and known to have other dims.
void CheckDims(const InferContext& c, size_t input, const Dims& want);

// The one element, 1 to `most`, of an integer input; nullopt when not known, failure when it is
// another.
std::optional<int64_t> InferPositive(const InferContext& c, size_t input, int64_t most);

}  // namespace whimbrel
