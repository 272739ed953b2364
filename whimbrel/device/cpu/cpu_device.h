// CpuDevice: this machine's processors and memory as device "cpu:0".

#pragma once

#include <memory>
#include <vector>

#include "whimbrel/device/copy_counters.h"
#include "whimbrel/device/cpu/memory_pool.h"
#include "whimbrel/device/device.h"

namespace whimbrel {

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(DeviceInfo info);

  const DeviceInfo& info() const override { return info_; }
  void* Allocate(size_t bytes) override { return pool_.Allocate(bytes); }
  void Free(void* pointer) noexcept override { pool_.Free(pointer); }
  void TrimPool() override { pool_.Trim(); }
  void SetMemoryLimit(uint64_t bytes) override { pool_.SetLimit(bytes); }
  std::unique_ptr<Stream> CreateStream(const StreamOptions& options) override;
  std::unique_ptr<Event> CreateEvent() override;
  MemoryStats memory() const override { return pool_.stats(); }
  CopyStats copies() const override { return counters_->stats(); }
  void CountCopy(CopyKind kind, uint64_t bytes) override { counters_->Count(kind, bytes); }

 private:
  const DeviceInfo info_;
  MemoryPool pool_;
  const std::shared_ptr<CopyCounters>
      counters_;  // shared with streams, which may outlive the device
};

}  // namespace whimbrel
