// Strided block copies.

#include "whimbrel/kernels/ops/move.h"

#include <cstring>

#include "whimbrel/base/threads.h"

namespace whimbrel {
namespace {

// Adjacent dims that lie one in the other on both sides become one; dims of 1 go.
StridedBlock Merged(const StridedBlock& block) {
  StridedBlock merged;
  merged.in_offset = block.in_offset;
  merged.out_offset = block.out_offset;
  for (size_t d = 0; d < static_cast<size_t>(block.rank); ++d) {
    if (block.dims[d] == 1) continue;
    if (merged.rank > 0) {
      const auto last = static_cast<size_t>(merged.rank - 1);
      if (merged.in_strides[last] == block.in_strides[d] * block.dims[d] &&
          merged.out_strides[last] == block.out_strides[d] * block.dims[d]) {
        merged.dims[last] *= block.dims[d];
        merged.in_strides[last] = block.in_strides[d];
        merged.out_strides[last] = block.out_strides[d];
        continue;
      }
    }
    merged.Append(block.dims[d], block.in_strides[d], block.out_strides[d]);
  }
  return merged;
}

template <typename T>
void CopyTyped(const StridedBlock& b, const T* in, T* out) {
  const int outer_rank = b.rank > 0 ? b.rank - 1 : 0;
  const auto last = static_cast<size_t>(outer_rank);
  const int64_t length = b.rank > 0 ? b.dims[last] : 1;
  const int64_t in_step = b.rank > 0 ? b.in_strides[last] : 1;
  const int64_t out_step = b.rank > 0 ? b.out_strides[last] : 1;
  int64_t rows = 1;
  for (size_t d = 0; d < last; ++d) rows *= b.dims[d];
  if (rows == 0 || length == 0) return;
  ParallelFor(rows, 1 + 16384 / length, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t from = b.in_offset;
      int64_t to = b.out_offset;
      int64_t rest = row;
      for (size_t d = last; d-- > 0;) {
        const int64_t at = rest % b.dims[d];
        rest /= b.dims[d];
        from += at * b.in_strides[d];
        to += at * b.out_strides[d];
      }
      if (in_step == 1 && out_step == 1) {
        std::memcpy(out + to, in + from, static_cast<size_t>(length) * sizeof(T));
      } else {
        for (int64_t i = 0; i < length; ++i) out[to + i * out_step] = in[from + i * in_step];
      }
    }
  });
}

}  // namespace

void StridedBlock::Append(int64_t dim, int64_t in_stride, int64_t out_stride) {
  const auto d = static_cast<size_t>(rank++);
  dims[d] = dim;
  in_strides[d] = in_stride;
  out_strides[d] = out_stride;
}

void CopyBlock(const StridedBlock& block, size_t item_bytes, const void* in, void* out) {
  for (size_t d = 0; d < static_cast<size_t>(block.rank); ++d) {
    if (block.dims[d] == 0) return;
  }
  const StridedBlock merged = Merged(block);
  switch (item_bytes) {
    case 1:
      return CopyTyped(merged, static_cast<const uint8_t*>(in), static_cast<uint8_t*>(out));
    case 2:
      return CopyTyped(merged, static_cast<const uint16_t*>(in), static_cast<uint16_t*>(out));
    case 4:
      return CopyTyped(merged, static_cast<const uint32_t*>(in), static_cast<uint32_t*>(out));
    case 8:
      return CopyTyped(merged, static_cast<const uint64_t*>(in), static_cast<uint64_t*>(out));
    default:
      throw Error(Code::kUnsupported, "elements of " + std::to_string(item_bytes) + " bytes");
  }
}

void CopyRows(const RowRange& rows, size_t item_bytes, const void* in, void* out) {
  StridedBlock block;
  block.Append(rows.outer, rows.in_rows * rows.inner, rows.out_rows * rows.inner);
  block.Append(rows.count * rows.inner, 1, 1);
  block.in_offset = rows.in_begin * rows.inner;
  block.out_offset = rows.out_begin * rows.inner;
  CopyBlock(block, item_bytes, in, out);
}

void CopyView(const OpCall& call) {
  if (call.x(0).raw() == call.y(0).raw() || call.x(0).elements() == 0) return;
  std::memcpy(call.y(0).raw(), call.x(0).raw(), call.x(0).bytes());
}

}  // namespace whimbrel
