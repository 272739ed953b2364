// move: what the ops share that only rearrange elements: strided block copies and views.

#pragma once

#include <array>
#include <cstdint>

#include "whimbrel/kernels/kernels.h"

namespace whimbrel {

// A box of elements read from one strided place and written to another. Strides and offsets are in
// elements and may be negative (in) or zero (in).
struct StridedBlock {
  int rank = 0;
  std::array<int64_t, kMaxRank> dims{};
  std::array<int64_t, kMaxRank> in_strides{};
  std::array<int64_t, kMaxRank> out_strides{};
  int64_t in_offset = 0;
  int64_t out_offset = 0;

  void Append(int64_t dim, int64_t in_stride, int64_t out_stride);
};

// Copies the box; elements have item_bytes 1, 2, 4 or 8.
void CopyBlock(const StridedBlock& block, size_t item_bytes, const void* in, void* out);

// Out of a tensor [outer, in_rows, inner] rows [begin, begin + count) go to rows
// [out_begin, out_begin + count) of [outer, out_rows, inner].
struct RowRange {
  int64_t outer = 1;
  int64_t inner = 1;
  int64_t in_rows = 0;
  int64_t in_begin = 0;
  int64_t out_rows = 0;
  int64_t out_begin = 0;
  int64_t count = 0;
};
void CopyRows(const RowRange& rows, size_t item_bytes, const void* in, void* out);

// Copies input 0's bytes to output 0, unless they share memory.
void CopyView(const OpCall& call);

}  // namespace whimbrel
