// OpenDevice and ListDevices: names, one object per name, errors that help, and the cpu device
// behind them.

#include "whimbrel/device/device.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "whimbrel/base/error.h"

namespace whimbrel {
namespace {

class FakeDevice final : public Device {
 public:
  explicit FakeDevice(std::shared_ptr<Device> host) : host_(std::move(host)) {
    info_.name = "fake:1";
  }
  const DeviceInfo& info() const override { return info_; }
  void* Allocate(size_t bytes) override { return host_->Allocate(bytes); }
  void Free(void* pointer) noexcept override { host_->Free(pointer); }
  void TrimPool() override {}
  void SetMemoryLimit(uint64_t) override {}
  std::unique_ptr<Stream> CreateStream(const StreamOptions&) override { return nullptr; }
  std::unique_ptr<Event> CreateEvent() override { return nullptr; }
  MemoryStats memory() const override { return {}; }
  CopyStats copies() const override { return {}; }
  void CountCopy(CopyKind, uint64_t) override {}

 private:
  DeviceInfo info_;
  std::shared_ptr<Device> host_;
};

int g_fake_opens = 0;  // guarded by the registry, which opens a name once at a time

const RegisterDevice kRegisterFake({.kind = "fake",
                                    .list =
                                        [] {
                                          DeviceInfo info;
                                          info.name = "fake:1";
                                          return std::vector<DeviceInfo>{info};
                                        },
                                    .open = [](int) -> std::shared_ptr<Device> {
                                      // The first open fails; and opening may open the host.
                                      if (++g_fake_opens == 1)
                                        throw Error(Code::kDeviceError, "busy");
                                      return std::make_shared<FakeDevice>(OpenDevice("cpu"));
                                    }});
const RegisterDevice kRegisterAbsent({.kind = "absent",
                                      .list = [] { return std::vector<DeviceInfo>(); },
                                      .open = [](int) { return std::shared_ptr<Device>(); }});

Error ErrorOf(std::string_view name) {
  try {
    OpenDevice(name);
  } catch (const Error& error) {
    return error;
  }
  return Error(Code::kOk, "nothing was thrown");
}

TEST(OpenDevice, GivesTheSameDeviceForTheSameName) {
  const std::shared_ptr<Device> device = OpenDevice("cpu:0");
  EXPECT_EQ(OpenDevice("cpu"), device);
  EXPECT_EQ(OpenDevice("cpu:0"), device);
  EXPECT_EQ(device->info().name, "cpu:0");
}

TEST(OpenDevice, KeepsPoolAndCountersWhenNobodyHoldsTheDevice) {
  const uint64_t before = OpenDevice("cpu")->memory().allocations;
  OpenDevice("cpu")->Free(OpenDevice("cpu")->Allocate(64));
  EXPECT_EQ(OpenDevice("cpu")->memory().allocations, before + 1);
}

TEST(OpenDevice, GivesOneDeviceToThreadsAtOnce) {
  std::vector<std::shared_ptr<Device>> devices(4);
  std::vector<std::thread> threads;
  threads.reserve(devices.size());
  for (auto& device : devices) threads.emplace_back([&device] { device = OpenDevice("cpu"); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set(devices.begin(), devices.end()).size(), 1u);
}

TEST(OpenDevice, TriesAgainAfterAFailedOpenAndLetsABackendOpenTheHost) {
  EXPECT_EQ(ErrorOf("fake:1").code(), Code::kDeviceError);
  const std::shared_ptr<Device> device = OpenDevice("fake:1");
  EXPECT_EQ(OpenDevice("fake:1"), device);
  EXPECT_EQ(g_fake_opens, 2);
}

TEST(OpenDevice, NamesTheKnownDevicesForAnUnknownOne) {
  for (const char* const name : {"cpu:1", "cpu:", "cpu:x", "cpu:-1", "cpu:0 ", "cpu:99999999999",
                                 "cpuu:0", "", ":", "fake"}) {
    const Error error = ErrorOf(name);
    EXPECT_EQ(error.code(), Code::kNotFound) << name;
    EXPECT_NE(std::string(error.what()).find("cpu:0"), std::string::npos) << error.what();
    EXPECT_FALSE(error.hint().empty()) << name;
  }
  EXPECT_EQ(ErrorOf("cpu:1").hint(), "did you mean 'cpu:0'?");
  EXPECT_EQ(ErrorOf("cpuu:0").hint(), "did you mean 'cpu:0'?");
}

TEST(OpenDevice, SaysWhenAKindHasNoDeviceHere) {
  EXPECT_EQ(ErrorOf("absent:0").code(), Code::kNotFound);
  EXPECT_EQ(ErrorOf("absent:0").hint(), "no absent device was found; see `whimbrel doctor`");
}

TEST(ListDevices, PutsTheCpuFirstAndDescribesIt) {
  const std::vector<DeviceInfo> devices = ListDevices();
  ASSERT_FALSE(devices.empty());
  const DeviceInfo& cpu = devices.front();
  EXPECT_EQ(cpu.name, "cpu:0");
  EXPECT_EQ(cpu.kind, DeviceKind::kCpu);
  EXPECT_FALSE(cpu.description.empty());
  EXPECT_GT(cpu.memory_bytes, uint64_t{1} << 20);
  EXPECT_GE(cpu.cores, 1);
  EXPECT_FALSE(cpu.emulated);
  EXPECT_EQ(cpu.alignment_bytes, 64u);
}

TEST(DeviceKindName, NamesEveryKind) {
  EXPECT_EQ(DeviceKindName(DeviceKind::kCpu), "cpu");
  EXPECT_EQ(DeviceKindName(DeviceKind::kCuda), "cuda");
  EXPECT_EQ(DeviceKindName(DeviceKind::kAscend), "ascend");
}

TEST(CpuDevice, AllocatesAlignedMemoryUnderItsLimit) {
  const std::shared_ptr<Device> device = OpenDevice("cpu");
  device->TrimPool();
  void* const block = device->Allocate(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % device->info().alignment_bytes, 0u);
  device->SetMemoryLimit(device->memory().reserved_bytes + 1000);
  EXPECT_THROW(device->Allocate(4096), Error);
  device->SetMemoryLimit(0);
  device->Free(block);
}

TEST(CpuDevice, CountsCopiesByKind) {
  const std::shared_ptr<Device> device = OpenDevice("cpu");
  const CopyStats before = device->copies();
  std::vector<char> from(1000, 'x');
  std::vector<char> to(1000);
  const std::unique_ptr<Stream> stream = device->CreateStream({});
  stream->CopyAsync(to.data(), from.data(), 1000, CopyKind::kHostToDevice);
  stream->CopyAsync(to.data(), from.data(), 200, CopyKind::kDeviceToHost);
  stream->CopyAsync(to.data(), from.data(), 30, CopyKind::kDeviceToDevice);
  stream->CopyAsync(to.data(), from.data(), 0, CopyKind::kDeviceToDevice);  // is none
  device->CountCopy(CopyKind::kAlignment, 4);
  stream->Synchronize();
  EXPECT_EQ(to, from);
  const CopyStats after = device->copies();
  EXPECT_EQ(after.host_to_device_bytes - before.host_to_device_bytes, 1000u);
  EXPECT_EQ(after.device_to_host_bytes - before.device_to_host_bytes, 200u);
  EXPECT_EQ(after.device_to_device_bytes - before.device_to_device_bytes, 30u);
  EXPECT_EQ(after.alignment_bytes - before.alignment_bytes, 4u);
  EXPECT_EQ(after.copies - before.copies, 4u);
}

}  // namespace
}  // namespace whimbrel
