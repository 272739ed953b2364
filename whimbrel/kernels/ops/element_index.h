// element_index: what GatherElements and ScatterElements share: the place in data that each element
// of indices names.

#pragma once

#include <fmt/format.h>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {

// Ranks of inputs 0 (data) and 1 (indices) are equal and at least 1; indices does not reach beyond
// data outside the axis.
inline void CheckElementIndices(const InferContext& c) {
  const auto& data = c.in(0).dims;
  const auto& indices = c.in(1).dims;
  if ((data && data->empty()) || (indices && indices->empty())) {
    c.Fail("data and indices need a rank of 1 or more");
  }
  if (!data) return;
  const int axis =
      NormalizeAxis(c.attrs().Int("axis", 0), static_cast<int>(data->size()), c.schema().name);
  if (!indices) return;
  bool fits = data->size() == indices->size();
  for (size_t d = 0; fits && d < data->size(); ++d) {
    const Dim& have = (*data)[d];
    const Dim& asked = (*indices)[d];
    if (static_cast<int>(d) == axis || !have.known() || !asked.known()) continue;
    fits = asked.value() <= have.value();
  }
  if (!fits) {
    c.Fail(fmt::format("indices {} do not fit data {} on axis {}", ToString(*indices),
                       ToString(*data), axis),
           "the ranks must be equal, and other dims than the axis at most those of data");
  }
}

class ElementIndex {
 public:
  explicit ElementIndex(const OpCall& call) {
    const Shape& data = call.x(0).shape();
    axis_ = NormalizeAxis(call.attrs().Int("axis", 0), data.rank(), call.schema->name);
    limit_ = data[axis_];
    strides_ = data.Strides();
  }

  // Throws kInvalidArgument for an index outside the axis.
  void CheckRange(const OpCall& call) const {
    const Tensor& indices = call.x(1);
    const int64_t count = indices.elements();
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = Value(indices, i);
      if (at >= -limit_ && at < limit_) continue;
      throw Error(
          Code::kInvalidArgument,
          fmt::format("{}: index {} at position {} is outside [-{}, {}) of data {}",
                      call.schema->name, at, i, limit_, limit_, ToString(call.x(0).shape())),
          "indices must lie within the axis");
    }
  }

  // fn(i, offset): element i of indices names element `offset` of data, for i in [begin, end).
  template <typename F>
  void Walk(const OpCall& call, int64_t begin, int64_t end, F&& fn) const {
    const Tensor& indices = call.x(1);
    const Shape& shape = indices.shape();
    for (int64_t i = begin; i < end; ++i) {
      int64_t offset = 0;
      int64_t rest = i;
      for (int d = shape.rank() - 1; d >= 0; --d) {
        int64_t at = rest % shape[d];
        rest /= shape[d];
        if (d == axis_) {
          at = Value(indices, i);
          if (at < 0) at += limit_;
        }
        offset += at * strides_[static_cast<size_t>(d)];
      }
      fn(i, offset);
    }
  }

 private:
  static int64_t Value(const Tensor& indices, int64_t i) {
    return indices.dtype() == DType::kInt32 ? indices.data<int32_t>()[i]
                                            : indices.data<int64_t>()[i];
  }

  int axis_ = 0;
  int64_t limit_ = 0;
  std::array<int64_t, kMaxRank> strides_{};
};

}  // namespace whimbrel
