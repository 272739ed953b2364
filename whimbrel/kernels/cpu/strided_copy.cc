// Strided copies: dims sorted by where they are written, merged, then the widest loop that fits.

#include "whimbrel/kernels/cpu/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "whimbrel/base/threads.h"

namespace whimbrel {
namespace {

// Bytes that make waking a second thread worth it.
constexpr int64_t kGrainBytes = 256 << 10;

// Largest out-stride first; neighbours that lie one in the other on both sides become one.
StridedBlock SortAndMerge(const StridedBlock& block) {
  StridedBlock sorted;
  sorted.in_offset = block.in_offset;
  sorted.out_offset = block.out_offset;
  std::array<size_t, kMaxRank> order{};
  size_t kept = 0;
  for (size_t d = 0; d < static_cast<size_t>(block.rank); ++d) {
    if (block.dims[d] != 1) order[kept++] = d;
  }
  // Insertion keeps axes of equal strides in order; std::stable_sort would allocate a buffer.
  for (size_t i = 1; i < kept; ++i) {
    for (size_t k = i; k > 0 && block.out_strides[order[k - 1]] < block.out_strides[order[k]];
         --k) {
      std::swap(order[k - 1], order[k]);
    }
  }
  for (size_t i = 0; i < kept; ++i) {
    const size_t d = order[i];
    if (sorted.rank > 0) {
      const auto last = static_cast<size_t>(sorted.rank - 1);
      if (sorted.in_strides[last] == block.in_strides[d] * block.dims[d] &&
          sorted.out_strides[last] == block.out_strides[d] * block.dims[d]) {
        sorted.dims[last] *= block.dims[d];
        sorted.in_strides[last] = block.in_strides[d];
        sorted.out_strides[last] = block.out_strides[d];
        continue;
      }
    }
    sorted.Append(block.dims[d], block.in_strides[d], block.out_strides[d]);
  }
  if (sorted.rank == 0) sorted.Append(1, 1, 1);
  return sorted;
}

// Offsets of the outer dims, one row after another.
class OuterWalk {
 public:
  OuterWalk(const StridedBlock& b, int rank, int64_t index) : b_(b), rank_(rank) {
    in = b.in_offset;
    out = b.out_offset;
    for (auto d = static_cast<size_t>(rank); d-- > 0;) {
      at_[d] = index % b.dims[d];
      index /= b.dims[d];
      in += at_[d] * b.in_strides[d];
      out += at_[d] * b.out_strides[d];
    }
  }
  void Next() {
    for (auto d = static_cast<size_t>(rank_); d-- > 0;) {
      in += b_.in_strides[d];
      out += b_.out_strides[d];
      if (++at_[d] < b_.dims[d]) return;
      in -= b_.in_strides[d] * b_.dims[d];
      out -= b_.out_strides[d] * b_.dims[d];
      at_[d] = 0;
    }
  }
  int64_t in = 0;
  int64_t out = 0;

 private:
  const StridedBlock& b_;
  int rank_;
  std::array<int64_t, kMaxRank> at_{};
};

int64_t OuterCount(const StridedBlock& b, int rank) {
  int64_t count = 1;
  for (size_t d = 0; d < static_cast<size_t>(rank); ++d) count *= b.dims[d];
  return count;
}

template <typename T>
void CopyRun(T* to, int64_t to_step, const T* from, int64_t from_step, int64_t count) {
  if (to_step == 1 && from_step == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
  } else if (to_step == 1 && from_step == 0) {
    std::fill_n(to, count, *from);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * to_step] = from[i * from_step];
  }
}

template <typename T>
void CopyRows(const StridedBlock& b, const T* in, T* out) {
  const int outer = b.rank - 1;
  const auto last = static_cast<size_t>(outer);
  const int64_t length = b.dims[last];
  const int64_t rows = OuterCount(b, outer);
  const auto row_bytes = length * static_cast<int64_t>(sizeof(T));
  if (rows == 1 && b.in_strides[last] == 1 && b.out_strides[last] == 1) {
    ParallelFor(length, kGrainBytes / static_cast<int64_t>(sizeof(T)),
                [&](int64_t begin, int64_t end) {
                  CopyRun(out + b.out_offset + begin, 1, in + b.in_offset + begin, 1, end - begin);
                });
    return;
  }
  ParallelFor(rows, 1 + kGrainBytes / row_bytes, [&](int64_t begin, int64_t end) {
    OuterWalk walk(b, outer, begin);
    for (int64_t row = begin; row < end; ++row, walk.Next()) {
      CopyRun(out + walk.out, b.out_strides[last], in + walk.in, b.in_strides[last], length);
    }
  });
}

using Quad = uint32_t __attribute__((vector_size(16)));

Quad LoadQuad(const uint32_t* from) {
  Quad q;
  std::memcpy(&q, from, sizeof(q));
  return q;
}
void StoreQuad(uint32_t* to, Quad q) {
  std::memcpy(to, &q, sizeof(q));
}

// to[j * to_stride + i] = from[i * from_stride + j] for 4 x 4 items. Written out: as loops over an
// array GCC 12 keeps the quads in memory and takes twice the time.
void TransposeQuads(uint32_t* to, int64_t to_stride, const uint32_t* from, int64_t from_stride) {
  const Quad r0 = LoadQuad(from);
  const Quad r1 = LoadQuad(from + from_stride);
  const Quad r2 = LoadQuad(from + 2 * from_stride);
  const Quad r3 = LoadQuad(from + 3 * from_stride);
  const Quad a = __builtin_shufflevector(r0, r1, 0, 4, 1, 5);
  const Quad b = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
  const Quad c = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
  const Quad d = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
  StoreQuad(to, __builtin_shufflevector(a, c, 0, 1, 4, 5));
  StoreQuad(to + to_stride, __builtin_shufflevector(a, c, 2, 3, 6, 7));
  StoreQuad(to + 2 * to_stride, __builtin_shufflevector(b, d, 0, 1, 4, 5));
  StoreQuad(to + 3 * to_stride, __builtin_shufflevector(b, d, 2, 3, 6, 7));
}

// to[j * to_stride + i] = from[i * from_stride + j] for rows x columns items.
template <typename T>
void TransposeTile(T* to, int64_t to_stride, const T* from, int64_t from_stride, int64_t rows,
                   int64_t columns) {
  int64_t quad_rows = 0;
  int64_t quad_columns = 0;
  if constexpr (sizeof(T) == 4) {
    quad_rows = rows / 4 * 4;
    quad_columns = columns / 4 * 4;
    for (int64_t j = 0; j < quad_columns; j += 4) {
      for (int64_t i = 0; i < quad_rows; i += 4) {
        TransposeQuads(to + j * to_stride + i, to_stride, from + i * from_stride + j, from_stride);
      }
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i < quad_rows ? quad_columns : 0; j < columns; ++j) {
      to[j * to_stride + i] = from[i * from_stride + j];
    }
  }
}

// The innermost written dim is read with a stride, and `across` is read contiguously: both by
// tiles.
template <typename T>
void CopyTransposed(const StridedBlock& b, size_t across, const T* in, T* out) {
  // 16 lines of 64 bytes on either side
  constexpr int64_t kTile = std::max<int64_t>(16, 64 / static_cast<int64_t>(sizeof(T)));
  const auto last = static_cast<size_t>(b.rank - 1);
  StridedBlock outer;
  outer.in_offset = b.in_offset;
  outer.out_offset = b.out_offset;
  for (size_t d = 0; d < last; ++d) {
    if (d != across) outer.Append(b.dims[d], b.in_strides[d], b.out_strides[d]);
  }
  const int64_t rows = b.dims[last];       // along the written run
  const int64_t columns = b.dims[across];  // along the read run
  const int64_t strips = (columns + kTile - 1) / kTile;
  const int64_t count = OuterCount(outer, outer.rank) * strips;
  const int64_t strip_bytes = rows * kTile * static_cast<int64_t>(sizeof(T));
  ParallelFor(count, 1 + kGrainBytes / strip_bytes, [&](int64_t begin, int64_t end) {
    OuterWalk walk(outer, outer.rank, begin / strips);
    int64_t strip = begin % strips;
    for (int64_t k = begin; k < end; ++k) {
      const int64_t j = strip * kTile;
      const int64_t width = std::min(kTile, columns - j);
      for (int64_t i = 0; i < rows; i += kTile) {
        TransposeTile(out + walk.out + j * b.out_strides[across] + i, b.out_strides[across],
                      in + walk.in + i * b.in_strides[last] + j, b.in_strides[last],
                      std::min(kTile, rows - i), width);
      }
      if (++strip == strips) {
        strip = 0;
        walk.Next();
      }
    }
  });
}

template <typename T>
void CopyTyped(const StridedBlock& b, const void* in, void* out) {
  const auto last = static_cast<size_t>(b.rank - 1);
  if (b.out_strides[last] == 1 && b.in_strides[last] > 1) {
    for (size_t d = 0; d < last; ++d) {
      if (b.in_strides[d] == 1) {
        return CopyTransposed(b, d, static_cast<const T*>(in), static_cast<T*>(out));
      }
    }
  }
  CopyRows(b, static_cast<const T*>(in), static_cast<T*>(out));
}

}  // namespace

void CopyStrided(const StridedBlock& block, size_t item_bytes, const void* in, void* out) {
  for (size_t d = 0; d < static_cast<size_t>(block.rank); ++d) {
    if (block.dims[d] == 0) return;
  }
  const StridedBlock b = SortAndMerge(block);
  switch (item_bytes) {
    case 1:
      return CopyTyped<uint8_t>(b, in, out);
    case 2:
      return CopyTyped<uint16_t>(b, in, out);
    case 4:
      return CopyTyped<uint32_t>(b, in, out);
    case 8:
      return CopyTyped<uint64_t>(b, in, out);
    default:
      WHIMBREL_CHECK(item_bytes == 8);
  }
}

Shape MemoryShape(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  if (tensor.layout() == Layout::kPlain || shape.rank() < 3) return shape;
  Shape memory = shape;
  for (int d = 2; d < shape.rank(); ++d) memory.set(d - 1, shape[d]);
  memory.set(shape.rank() - 1, shape[1]);
  return memory;
}

int MemoryAxis(const Tensor& tensor, int axis) {
  const int rank = tensor.shape().rank();
  if (tensor.layout() == Layout::kPlain || rank < 3 || axis == 0) return axis;
  return axis == 1 ? rank - 1 : axis - 1;
}

}  // namespace whimbrel
