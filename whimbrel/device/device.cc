// The registry of device backends, and OpenDevice and ListDevices on top of it.

#include "whimbrel/device/device.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "whimbrel/base/config.h"
#include "whimbrel/base/error.h"

namespace whimbrel {
namespace {

// One open device. Its own mutex, so that opening one device may open another (a host for staging).
struct OpenSlot {
  std::mutex mutex;
  std::shared_ptr<Device> device;  // guarded by mutex
};

// Devices stay open until the process ends: their pools and counters outlive the last user.
struct Registry {
  std::mutex mutex;
  std::vector<DeviceBackend> backends;                    // guarded by mutex
  std::map<std::string, std::shared_ptr<OpenSlot>> open;  // guarded by mutex; key "kind:index"
};

Registry& registry() {
  static Registry instance;
  return instance;
}

// In the order of their kinds' names, cpu first: static registration has no order of its own.
std::vector<DeviceBackend> Backends() {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  std::vector<DeviceBackend> backends = known.backends;
  std::ranges::sort(backends, [](const DeviceBackend& a, const DeviceBackend& b) {
    return std::pair(a.kind != "cpu", a.kind) < std::pair(b.kind != "cpu", b.kind);
  });
  return backends;
}

// "cpu" -> {"cpu", 0}; no value when the part after ':' is no index.
std::optional<std::pair<std::string_view, int>> SplitName(std::string_view name) {
  const size_t colon = name.find(':');
  if (colon == std::string_view::npos) return std::pair(name, 0);
  const std::string_view digits = name.substr(colon + 1);
  const char* const end = digits.data() + digits.size();
  int index = 0;
  const auto [stop, fault] = std::from_chars(digits.data(), end, index);
  if (fault != std::errc{} || stop != end || index < 0) return std::nullopt;
  return std::pair(name.substr(0, colon), index);
}

[[noreturn]] void ThrowUnknown(std::string_view name, const std::vector<DeviceBackend>& backends) {
  std::vector<std::string> devices;
  for (const DeviceInfo& info : ListDevices()) devices.push_back(info.name);
  const std::vector<std::string_view> words(devices.begin(), devices.end());
  std::string what =
      fmt::format("device '{}' is not known; known devices: {}", name,
                  devices.empty() ? "none" : fmt::format("{}", fmt::join(words, ", ")));
  const std::string_view kind = name.substr(0, name.find(':'));
  const bool kind_known = std::ranges::any_of(
      backends, [kind](const DeviceBackend& backend) { return backend.kind == kind; });
  const bool kind_present = std::ranges::any_of(devices, [kind](const std::string& device) {
    return device.substr(0, device.find(':')) == kind;
  });
  if (kind_known && !kind_present) {
    throw Error(Code::kNotFound, what,
                fmt::format("no {} device was found; see `whimbrel doctor`", kind));
  }
  const std::string_view near = NearestWord(name, words);
  throw Error(
      Code::kNotFound, what,
      near.empty() ? "take one of the known devices" : fmt::format("did you mean '{}'?", near));
}

}  // namespace

std::string_view DeviceKindName(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kCpu:
      return "cpu";
    case DeviceKind::kCuda:
      return "cuda";
    case DeviceKind::kAscend:
      return "ascend";
  }
  return "unknown";
}

RegisterDevice::RegisterDevice(const DeviceBackend& backend) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  known.backends.push_back(backend);
}

std::vector<DeviceInfo> ListDevices() {
  std::vector<DeviceInfo> devices;
  for (const DeviceBackend& backend : Backends()) {
    for (DeviceInfo& info : backend.list()) devices.push_back(std::move(info));
  }
  return devices;
}

std::shared_ptr<Device> OpenDevice(std::string_view name) {
  const std::vector<DeviceBackend> backends = Backends();
  const auto parts = SplitName(name);
  if (!parts) ThrowUnknown(name, backends);
  const int index = parts->second;
  const auto backend = std::ranges::find(backends, parts->first, &DeviceBackend::kind);
  if (backend == backends.end()) ThrowUnknown(name, backends);

  const std::string full_name = fmt::format("{}:{}", parts->first, index);
  std::shared_ptr<OpenSlot> slot;
  {
    Registry& known = registry();
    const std::lock_guard lock(known.mutex);
    if (const auto found = known.open.find(full_name); found != known.open.end())
      slot = found->second;
  }
  if (!slot) {
    const std::vector<DeviceInfo> present = backend->list();
    if (std::ranges::find(present, full_name, &DeviceInfo::name) == present.end()) {
      ThrowUnknown(name, backends);
    }
    auto fresh = std::make_shared<OpenSlot>();
    Registry& known = registry();
    const std::lock_guard lock(known.mutex);
    slot = known.open.try_emplace(full_name, std::move(fresh)).first->second;
  }
  const std::lock_guard lock(slot->mutex);
  if (!slot->device) slot->device = backend->open(index);
  return slot->device;
}

}  // namespace whimbrel
