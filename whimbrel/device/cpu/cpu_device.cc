// CpuDevice and its entry in the registry of devices.

#include "whimbrel/device/cpu/cpu_device.h"

#include <string>
#include <unistd.h>
#include <utility>

#include "whimbrel/base/cpu.h"
#include "whimbrel/base/threads.h"
#include "whimbrel/device/cpu/cpu_stream.h"

namespace whimbrel {
namespace {

uint64_t PhysicalMemoryBytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return 0;
  return static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
}

std::vector<DeviceInfo> ListCpu() {
  DeviceInfo info;
  info.name = "cpu:0";
  info.kind = DeviceKind::kCpu;
  info.description = CpuModelName();
  if (info.description.empty()) info.description = "processor of unknown model";
  info.memory_bytes = PhysicalMemoryBytes();
  info.cores = AvailableCores();
  info.alignment_bytes = MemoryPool::kAlignmentBytes;
  return {std::move(info)};
}

std::shared_ptr<Device> OpenCpu(int /*index: there is one*/) {
  return std::make_shared<CpuDevice>(ListCpu().front());
}

const RegisterDevice kRegisterCpu({.kind = "cpu", .list = ListCpu, .open = OpenCpu});

}  // namespace

CpuDevice::CpuDevice(DeviceInfo info)
    : info_(std::move(info)),
      pool_(info_.name, HostMemory()),
      counters_(std::make_shared<CopyCounters>()) {}

std::unique_ptr<Stream> CpuDevice::CreateStream(const StreamOptions& options) {
  return std::make_unique<CpuStream>(options, counters_);
}

std::unique_ptr<Event> CpuDevice::CreateEvent() {
  return std::make_unique<CpuEvent>();
}

}  // namespace whimbrel
