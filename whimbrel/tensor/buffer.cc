// Buffer: the four ways to come by memory, and how each is given back.

#include "whimbrel/tensor/buffer.h"

#include <cstdlib>

#include <fmt/format.h>

#include "whimbrel/base/error.h"

namespace whimbrel {
namespace {

// One cache line; also what every device promises for its own allocations.
constexpr size_t kHostAlignment = 64;
// More than any address space here holds: not even asked for.
constexpr size_t kMaxHostBytes = size_t{1} << 46;

}  // namespace

std::shared_ptr<Buffer> Buffer::Allocate(const std::shared_ptr<Device>& device, size_t bytes) {
  std::shared_ptr<Buffer> buffer(new Buffer);
  buffer->data_ = static_cast<std::byte*>(device->Allocate(bytes));
  buffer->size_ = bytes;
  buffer->device_ = device;
  return buffer;
}

std::shared_ptr<Buffer> Buffer::AllocateHost(size_t bytes) {
  std::shared_ptr<Buffer> buffer(new Buffer);
  // Empty buffers have an address too: a tensor without elements still "has data".
  const size_t rounded = (bytes / kHostAlignment + 1) * kHostAlignment;
  void* data = bytes <= kMaxHostBytes ? std::aligned_alloc(kHostAlignment, rounded) : nullptr;
  if (data == nullptr) {
    throw Error(Code::kOutOfMemory, fmt::format("host memory: {} bytes asked, none given", bytes),
                "free memory or use a smaller batch");
  }
  buffer->data_ = static_cast<std::byte*>(data);
  buffer->size_ = bytes;
  buffer->host_owned_ = true;
  return buffer;
}

std::shared_ptr<Buffer> Buffer::FromFile(std::shared_ptr<const MappedFile> file, size_t offset,
                                         size_t bytes) {
  const std::span<const std::byte> all = file->bytes();
  if (offset > all.size() || bytes > all.size() - offset) {
    throw Error(Code::kInvalidData, fmt::format("{}: {} bytes at offset {} asked, the file has {}",
                                                file->path(), bytes, offset, all.size()));
  }
  std::shared_ptr<Buffer> buffer(new Buffer);
  buffer->data_ = const_cast<std::byte*>(all.data()) + offset;
  buffer->size_ = bytes;
  buffer->keep_ = std::move(file);
  return buffer;
}

std::shared_ptr<Buffer> Buffer::Borrow(void* data, size_t bytes, std::shared_ptr<const void> keep) {
  std::shared_ptr<Buffer> buffer(new Buffer);
  buffer->data_ = static_cast<std::byte*>(data);
  buffer->size_ = bytes;
  buffer->keep_ = std::move(keep);
  return buffer;
}

Buffer::~Buffer() {
  if (device_ != nullptr) device_->Free(data_);
  if (host_owned_) std::free(data_);
}

}  // namespace whimbrel
