// file_tensor: maps where the address allows it, copies where not.

#include "whimbrel/tensor/file_tensor.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace whimbrel {

Tensor TensorFromBytes(const void* bytes, DType dtype, const Shape& shape) {
  Tensor tensor = Tensor::Host(dtype, shape);
  const size_t count = tensor.bytes();
  if (count == 0) return tensor;
  std::memcpy(tensor.raw(), bytes, count);
  if (dtype == DType::kBool) {
    for (uint8_t& value : std::span(tensor.data<uint8_t>(), count)) value = value != 0 ? 1 : 0;
  }
  return tensor;
}

Tensor TensorOnFile(const std::shared_ptr<const MappedFile>& file, size_t offset, DType dtype,
                    const Shape& shape) {
  const auto bytes = static_cast<size_t>(shape.elements()) * ItemSize(dtype);
  // Throws when the range is not in the file; an empty tensor gets memory of its own.
  const std::shared_ptr<Buffer> view = Buffer::FromFile(file, offset, bytes);
  if (bytes == 0) return Tensor::Host(dtype, shape);
  const std::byte* data = view->data();
  const bool aligned = reinterpret_cast<uintptr_t>(data) % ItemSize(dtype) == 0;
  const bool sound = dtype != DType::kBool ||
                     std::all_of(data, data + bytes, [](std::byte b) { return b <= std::byte{1}; });
  if (!aligned || !sound) return TensorFromBytes(data, dtype, shape);
  return Tensor(dtype, shape, view);
}

}  // namespace whimbrel
