// Buffer: one piece of memory with its owner: a device pool, a mapped file, or a lender.

#pragma once

#include <cstddef>
#include <memory>

#include "whimbrel/base/file.h"
#include "whimbrel/device/device.h"

namespace whimbrel {

class Buffer {
 public:
  // From the device's pool, given back when the last Tensor goes.
  static std::shared_ptr<Buffer> Allocate(const std::shared_ptr<Device>& device, size_t bytes);
  // Host memory of the calling process, outside any device's counters: constants, files, tests.
  static std::shared_ptr<Buffer> AllocateHost(size_t bytes);
  // Read-only view of a mapped file; keeps the map alive. Writing to it faults.
  static std::shared_ptr<Buffer> FromFile(std::shared_ptr<const MappedFile> file, size_t offset,
                                          size_t bytes);
  // Memory that the caller keeps alive; `keep` may hold it.
  static std::shared_ptr<Buffer> Borrow(void* data, size_t bytes,
                                        std::shared_ptr<const void> keep = nullptr);

  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  Buffer() = default;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::shared_ptr<Device> device_;
  std::shared_ptr<const void> keep_;
  bool host_owned_ = false;
};

}  // namespace whimbrel
