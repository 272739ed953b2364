// tensor: Tensor, Shape, types, layouts; reading and writing of weights, arrays and pictures.

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "whimbrel/base/error.h"
#include "whimbrel/tensor/buffer.h"
#include "whimbrel/tensor/dtype.h"
#include "whimbrel/tensor/shape.h"

namespace whimbrel {

// How the elements of a tensor of rank >= 3 lie in memory. The shape is always the logical one
// ([N, C, spatial...]); kChannelsLast stores it as [N, spatial..., C].
enum class Layout : uint8_t { kPlain, kChannelsLast };

// A dense tensor that shares its Buffer. Copying a Tensor copies no elements.
class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, const Shape& shape, std::shared_ptr<Buffer> buffer, size_t offset_bytes = 0,
         Layout layout = Layout::kPlain);
  // Type and shape without memory: what planning passes around.
  static Tensor Described(DType dtype, const Shape& shape, Layout layout = Layout::kPlain);
  // Host memory, not initialised / from values, as many as the shape has elements.
  static Tensor Host(DType dtype, const Shape& shape);
  template <typename T>
  static Tensor FromValues(const Shape& shape, std::span<const T> values);
  template <typename T>
  static Tensor FromValues(const Shape& shape, const std::vector<T>& values) {
    return FromValues(shape, std::span<const T>(values));
  }
  template <typename T>
  static Tensor Scalar(T value) {
    return FromValues(Shape{}, std::span<const T>(&value, 1));
  }

  bool defined() const { return dtype_ != DType::kUndefined; }
  bool has_data() const { return data_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  Layout layout() const { return layout_; }
  int64_t elements() const { return shape_.elements(); }
  size_t bytes() const { return static_cast<size_t>(elements()) * ItemSize(dtype_); }
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }

  void* raw() { return data_; }
  const void* raw() const { return data_; }
  template <typename T>
  T* data() {
    return static_cast<T*>(static_cast<void*>(data_));
  }
  template <typename T>
  const T* data() const {
    return static_cast<const T*>(static_cast<const void*>(data_));
  }
  template <typename T>
  std::span<T> values() {
    return {data<T>(), static_cast<size_t>(elements())};
  }
  template <typename T>
  std::span<const T> values() const {
    return {data<T>(), static_cast<size_t>(elements())};
  }

  // Same bytes under another shape with as many elements / another layout tag.
  Tensor Reshaped(const Shape& shape) const;
  Tensor WithLayout(const Shape& shape, Layout layout) const;
  // Points the tensor at memory that a plan owns; no reference count is touched.
  void Bind(void* data) { data_ = static_cast<std::byte*>(data); }
  // Keeps type and data pointer, sets the shape in place (executor, data-dependent shapes).
  void SetShape(const Shape& shape) { shape_ = shape; }

 private:
  DType dtype_ = DType::kUndefined;
  Layout layout_ = Layout::kPlain;
  Shape shape_;
  std::byte* data_ = nullptr;
  std::shared_ptr<Buffer> buffer_;
};

// Element `index` (memory order) as double / int64, whatever the type. To int64: the fraction is
// cut, values beyond it saturate, NaN is 0.
double ElementAsDouble(const Tensor& tensor, int64_t index);
int64_t ElementAsInt64(const Tensor& tensor, int64_t index);
// Floats are rounded once; integers lose the fraction and wrap (NaN and values beyond 64 bits give
// the smallest int64, wrapped).
void SetElementFromDouble(Tensor& tensor, int64_t index, double value);
// All elements of an integer (or bool) tensor, plain layout.
std::vector<int64_t> IntegerValues(const Tensor& tensor);

// A copy in host memory with plain layout.
Tensor CopyPlain(const Tensor& tensor);
// The memory order between layouts: copies `from` into `to` (same logical shape and type).
void ConvertLayout(const Tensor& from, Tensor& to);
bool BitEqual(const Tensor& a, const Tensor& b);  // type, shape, and bytes (plain layout)

template <typename T>
Tensor Tensor::FromValues(const Shape& shape, std::span<const T> values) {
  Tensor t = Host(kDTypeOf<T>, shape);
  WHIMBREL_CHECK(values.size() == static_cast<size_t>(t.elements()));
  std::copy(values.begin(), values.end(), t.data<T>());
  return t;
}

}  // namespace whimbrel
