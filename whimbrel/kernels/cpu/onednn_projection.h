// Projection: rows of f32 times one constant matrix, which is packed once: what recurrent kernels
// do at each step.

#pragma once

#if defined(WHIMBREL_WITH_ONEDNN) && WHIMBREL_WITH_ONEDNN

#include <cstddef>
#include <cstdint>
#include <span>

#include "whimbrel/kernels/cpu/onednn_common.h"

namespace whimbrel::onednn {

// y [rows, cols] = a [rows, depth] w^T [cols, depth] + bias [cols].
class Projection {
 public:
  // `bias` may be null. Make and run it with the same team.
  Projection(int64_t rows, int64_t depth, int64_t cols, const float* w, const float* bias,
             ScratchPlan& scratch);
  void Run(const float* a, float* y, std::span<std::byte> workspace);
  size_t bytes() const { return bytes_; }

 private:
  Primitive primitive_;
  size_t a_ = 0, y_ = 0, scratchpad_ = 0, scratchpad_at_ = 0, bytes_ = 0;
};

}  // namespace whimbrel::onednn

#endif
