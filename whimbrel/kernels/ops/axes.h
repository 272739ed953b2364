// axes: reading the axes of an op, which old opsets keep in an attribute and new ones in an input.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "whimbrel/kernels/kernels.h"

namespace whimbrel {

// A list of integers that inference may know, half know (`count`) or not know.
struct IntegerList {
  bool present = false;  // attribute or input is there
  std::optional<std::vector<int64_t>> values;
  std::optional<int64_t> count;
};
// From the attribute `name` when the schema has it (old opsets), else from input `i`.
IntegerList InferIntegers(const InferContext& c, std::string_view name, size_t i);

// The axes as a bit mask; repeated ones fail unless allowed. Fails on an axis out of range.
uint32_t InferAxisMask(const InferContext& c, std::span<const int64_t> axes, int rank,
                       bool repeats_allowed);

// The same list at run time, without allocation: up to kMaxRank * 2 values.
struct RunIntegers {
  bool present = false;
  int count = 0;
  std::array<int64_t, 2 * kMaxRank> values{};
  int64_t operator[](int i) const { return values[static_cast<size_t>(i)]; }
};
RunIntegers ReadIntegers(const OpCall& call, std::string_view name, size_t i);
uint32_t ReadAxisMask(const OpCall& call, const RunIntegers& axes, int rank);

inline bool HasAxis(uint32_t mask, int axis) {
  return ((mask >> axis) & 1U) != 0;
}

}  // namespace whimbrel
