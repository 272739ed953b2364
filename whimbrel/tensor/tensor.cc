// Tensor: construction, single elements, copies and the change of layout.

#include "whimbrel/tensor/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "whimbrel/base/error.h"
#include "whimbrel/base/threads.h"

namespace whimbrel {
namespace {

// A described tensor may have any type; one with memory needs a size per element.
void CheckStorable(DType dtype) {
  if (ItemSize(dtype) == 0) {
    throw Error(Code::kUnsupported,
                fmt::format("there are no tensors of type {}", DTypeName(dtype)));
  }
}

// Square tile of the transpose. 32 x 32 floats: 4 KiB read and 4 KiB written stay in L1, and each
// row of the tile is two whole cache lines on both sides.
constexpr int64_t kTile = 32;

template <typename T>
void TransposeTile(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                   int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) {
    for (int64_t r = 0; r < rows; ++r) to[c * to_stride + r] = from[r * from_stride + c];
  }
}

void Transpose4x4(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride) {
  using Words = uint32_t __attribute__((vector_size(16)));
  Words row0, row1, row2, row3;
  std::memcpy(&row0, from, 16);
  std::memcpy(&row1, from + from_stride, 16);
  std::memcpy(&row2, from + 2 * from_stride, 16);
  std::memcpy(&row3, from + 3 * from_stride, 16);
  const Words low01 = __builtin_shufflevector(row0, row1, 0, 4, 1, 5);
  const Words high01 = __builtin_shufflevector(row0, row1, 2, 6, 3, 7);
  const Words low23 = __builtin_shufflevector(row2, row3, 0, 4, 1, 5);
  const Words high23 = __builtin_shufflevector(row2, row3, 2, 6, 3, 7);
  const Words col0 = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
  const Words col1 = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
  const Words col2 = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
  const Words col3 = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
  std::memcpy(to, &col0, 16);
  std::memcpy(to + to_stride, &col1, 16);
  std::memcpy(to + 2 * to_stride, &col2, 16);
  std::memcpy(to + 3 * to_stride, &col3, 16);
}

// 4 x 4 words at a time in 16-byte registers; the rim goes the plain way.
void TransposeTile(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride,
                   int64_t rows, int64_t cols) {
  const int64_t full_rows = rows / 4 * 4;
  const int64_t full_cols = cols / 4 * 4;
  // The side with the longer stride is walked along its lines: rows a multiple of 4096 bytes apart
  // share one set of L1, which holds few of them (24 x 160 x 160 back to plain: 639 -> 89 us on one
  // core).
  if (to_stride > from_stride) {
    for (int64_t c = 0; c < full_cols; c += 4) {
      for (int64_t r = 0; r < full_rows; r += 4) {
        Transpose4x4(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
      }
    }
  } else {
    for (int64_t r = 0; r < full_rows; r += 4) {
      for (int64_t c = 0; c < full_cols; c += 4) {
        Transpose4x4(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
      }
    }
  }
  TransposeTile<uint32_t>(from + full_cols, from_stride, to + full_cols * to_stride, to_stride,
                          full_rows, cols - full_cols);
  TransposeTile<uint32_t>(from + full_rows * from_stride, from_stride, to + full_rows, to_stride,
                          rows - full_rows, cols);
}

// from: [batch, rows, cols] -> to: [batch, cols, rows].
template <typename T>
void TransposeBatch(const T* from, T* to, int64_t batch, int64_t rows, int64_t cols) {
  const int64_t row_tiles = (rows + kTile - 1) / kTile;
  const int64_t col_tiles = (cols + kTile - 1) / kTile;
  // 16 tiles are 16 Ki elements: some 5 us, several times the cost of waking the team.
  ParallelFor(batch * row_tiles * col_tiles, 16, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      // Neighbouring tiles follow each other along the written rows.
      const int64_t r = tile % row_tiles * kTile;
      const int64_t c = tile / row_tiles % col_tiles * kTile;
      const int64_t offset = tile / (row_tiles * col_tiles) * rows * cols;
      TransposeTile(from + offset + r * cols + c, cols, to + offset + c * rows + r, rows,
                    std::min(kTile, rows - r), std::min(kTile, cols - c));
    }
  });
}

}  // namespace

Tensor::Tensor(DType dtype, const Shape& shape, std::shared_ptr<Buffer> buffer, size_t offset_bytes,
               Layout layout)
    : dtype_(dtype), layout_(layout), shape_(shape), buffer_(std::move(buffer)) {
  CheckStorable(dtype);
  const size_t needed = bytes();
  if (offset_bytes > buffer_->size() || needed > buffer_->size() - offset_bytes) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("tensor {} {} needs {} bytes at offset {}, the buffer has {}", DTypeName(dtype),
                    ToString(shape), needed, offset_bytes, buffer_->size()));
  }
  data_ = buffer_->data() + offset_bytes;
}

Tensor Tensor::Described(DType dtype, const Shape& shape, Layout layout) {
  Tensor t;
  t.dtype_ = dtype;
  t.shape_ = shape;
  t.layout_ = layout;
  return t;
}

Tensor Tensor::Host(DType dtype, const Shape& shape) {
  CheckStorable(dtype);
  const auto bytes = static_cast<size_t>(shape.elements()) * ItemSize(dtype);
  return Tensor(dtype, shape, Buffer::AllocateHost(bytes));
}

Tensor Tensor::Reshaped(const Shape& shape) const {
  if (layout_ != Layout::kPlain && !(shape == shape_)) {
    throw Error(Code::kInvalidArgument,
                fmt::format("a channels-last tensor {} cannot be viewed as {}", ToString(shape_),
                            ToString(shape)),
                "convert it to the plain layout first");
  }
  return WithLayout(shape, layout_);
}

Tensor Tensor::WithLayout(const Shape& shape, Layout layout) const {
  if (shape.elements() != elements()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{} has {} elements, {} has {}", ToString(shape_), elements(),
                            ToString(shape), shape.elements()));
  }
  Tensor t = *this;
  t.shape_ = shape;
  t.layout_ = layout;
  return t;
}

double ElementAsDouble(const Tensor& tensor, int64_t index) {
  double value = 0;
  const bool known = DispatchType(
      tensor.dtype(), [&]<typename T>() { value = static_cast<double>(tensor.data<T>()[index]); });
  WHIMBREL_CHECK(known);
  return value;
}

int64_t ElementAsInt64(const Tensor& tensor, int64_t index) {
  int64_t value = 0;
  const bool known = DispatchType(tensor.dtype(), [&]<typename T>() {
    const T element = tensor.data<T>()[index];
    if constexpr (std::is_integral_v<T>) {
      constexpr auto max_value = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
      const bool above = std::is_unsigned_v<T> && static_cast<uint64_t>(element) > max_value;
      value = above ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(element);
    } else {
      const auto real = static_cast<double>(element);
      if (real >= 0x1p63) {
        value = std::numeric_limits<int64_t>::max();
      } else if (real < -0x1p63) {
        value = std::numeric_limits<int64_t>::min();
      } else {
        value = std::isnan(real) ? 0 : static_cast<int64_t>(real);
      }
    }
  });
  WHIMBREL_CHECK(known);
  return value;
}

void SetElementFromDouble(Tensor& tensor, int64_t index, double value) {
  const bool known = DispatchType(tensor.dtype(), [&]<typename T>() {
    T& element = tensor.data<T>()[index];
    if constexpr (std::is_same_v<T, bool>) {
      element = value != 0;
    } else if constexpr (std::is_integral_v<T>) {
      // The hardware's answers, without the undefined casts.
      if (value >= 0x1p63 && value < 0x1p64) {
        element = static_cast<T>(static_cast<uint64_t>(value));
      } else if (value >= -0x1p63 && value < 0x1p63) {
        element = static_cast<T>(static_cast<int64_t>(value));
      } else {
        element = static_cast<T>(std::numeric_limits<int64_t>::min());
      }
    } else if constexpr (std::is_same_v<T, float>) {
      element = static_cast<float>(value);
    } else {
      element = T(value);
    }
  });
  WHIMBREL_CHECK(known);
}

std::vector<int64_t> IntegerValues(const Tensor& tensor) {
  if (!IsInteger(tensor.dtype()) && tensor.dtype() != DType::kBool) {
    throw Error(Code::kInvalidArgument,
                fmt::format("expected integers, got {} {}", DTypeName(tensor.dtype()),
                            ToString(tensor.shape())));
  }
  const Tensor plain = tensor.layout() == Layout::kPlain ? tensor : CopyPlain(tensor);
  std::vector<int64_t> values(static_cast<size_t>(plain.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = ElementAsInt64(plain, static_cast<int64_t>(i));
  }
  return values;
}

Tensor CopyPlain(const Tensor& tensor) {
  Tensor copy = Tensor::Host(tensor.dtype(), tensor.shape());
  ConvertLayout(tensor, copy);
  return copy;
}

void ConvertLayout(const Tensor& from, Tensor& to) {
  if (from.dtype() != to.dtype() || !(from.shape() == to.shape())) {
    throw Error(Code::kInvalidArgument,
                fmt::format("copy of {} {} into {} {}", DTypeName(from.dtype()),
                            ToString(from.shape()), DTypeName(to.dtype()), ToString(to.shape())));
  }
  if (from.bytes() == 0) return;
  WHIMBREL_CHECK(from.has_data() && to.has_data());
  const Shape& shape = from.shape();
  const int64_t batch = shape.rank() >= 3 ? shape[0] : 1;
  const int64_t channels = shape.rank() >= 3 ? shape[1] : 1;
  const int64_t spatial = shape.rank() >= 3 ? shape.Product(2, shape.rank()) : 1;
  if (from.layout() == to.layout() || channels == 1 || spatial == 1) {
    std::memcpy(to.raw(), from.raw(), from.bytes());
    return;
  }
  const bool to_last = to.layout() == Layout::kChannelsLast;
  const int64_t rows = to_last ? channels : spatial;
  const int64_t cols = to_last ? spatial : channels;
  const auto run = [&]<typename T>(T) {
    TransposeBatch(from.data<T>(), to.data<T>(), batch, rows, cols);
  };
  switch (ItemSize(from.dtype())) {
    case 1:
      run(uint8_t{});
      break;
    case 2:
      run(uint16_t{});
      break;
    case 4:
      run(uint32_t{});
      break;
    default:
      run(uint64_t{});
      break;
  }
}

bool BitEqual(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (a.layout() != b.layout()) return BitEqual(CopyPlain(a), CopyPlain(b));
  const size_t bytes = a.bytes();
  return bytes == 0 || std::memcmp(a.raw(), b.raw(), bytes) == 0;
}

}  // namespace whimbrel
