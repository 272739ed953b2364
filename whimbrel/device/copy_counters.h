// CopyCounters: the copy figures of one device, added to by its streams from any thread.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "whimbrel/device/device.h"

namespace whimbrel {

class CopyCounters {
 public:
  void Count(CopyKind kind, uint64_t bytes) noexcept {
    bytes_[static_cast<size_t>(kind)].fetch_add(bytes, std::memory_order_relaxed);
    copies_.fetch_add(1, std::memory_order_relaxed);
  }

  // The fields are read one after another: copies that run meanwhile may be in some and not others.
  CopyStats stats() const noexcept {
    return {.host_to_device_bytes = bytes(CopyKind::kHostToDevice),
            .device_to_host_bytes = bytes(CopyKind::kDeviceToHost),
            .device_to_device_bytes = bytes(CopyKind::kDeviceToDevice),
            .alignment_bytes = bytes(CopyKind::kAlignment),
            .copies = copies_.load(std::memory_order_relaxed)};
  }

 private:
  uint64_t bytes(CopyKind kind) const noexcept {
    return bytes_[static_cast<size_t>(kind)].load(std::memory_order_relaxed);
  }

  std::array<std::atomic<uint64_t>, 4> bytes_{};  // by CopyKind
  std::atomic<uint64_t> copies_{0};
};

}  // namespace whimbrel
