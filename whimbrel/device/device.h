// device: memory, streams and events of one machine behind one interface; vendor libraries are reached by dlopen.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "whimbrel/base/function_ref.h"

namespace whimbrel {

enum class DeviceKind : uint8_t { kCpu, kCuda, kAscend };
std::string_view DeviceKindName(DeviceKind kind);

struct DeviceInfo {
  std::string name;  // "cpu:0": what --device takes
  DeviceKind kind = DeviceKind::kCpu;
  std::string description;
  uint64_t memory_bytes = 0;
  int cores = 0;
  bool emulated = false;
  size_t alignment_bytes = 64;  // every allocation and every arena offset
};

// Pool counters, bytes. fragmentation_ratio = 1 - largest free block / all free bytes, 0 when none is free.
struct MemoryStats {
  uint64_t current_bytes = 0;   // handed out now
  uint64_t peak_bytes = 0;      // most ever handed out at once
  uint64_t reserved_bytes = 0;  // taken from the system
  uint64_t allocations = 0;     // calls of Allocate since start
  uint64_t system_allocations = 0;
  double fragmentation_ratio = 0;
};

enum class CopyKind : uint8_t { kHostToDevice, kDeviceToHost, kDeviceToDevice, kAlignment };

struct CopyStats {
  uint64_t host_to_device_bytes = 0;
  uint64_t device_to_host_bytes = 0;
  uint64_t device_to_device_bytes = 0;
  uint64_t alignment_bytes = 0;  // implicit copies of inputs that broke the alignment rule
  uint64_t copies = 0;
};

// A point in a stream. Reusable: a later Record moves the point.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool Done() const = 0;  // true before the first Record
  virtual void Synchronize() = 0;
};

// An ordered queue of work. Work of two streams may overlap. Thread-safe.
class Stream {
 public:
  virtual ~Stream() = default;
  // Runs fn in stream order. cpu: on the stream's own thread; asynchronous devices: fn is called at
  // once and enqueues device work. The capture is copied into fixed slots (<= kMaxTaskBytes, checked at
  // compile time), so that launching allocates nothing. An exception of fn is kept and
  // thrown by the next Synchronize.
  template <typename F>
  void Launch(F fn) {
    static_assert(sizeof(F) <= kMaxTaskBytes && std::is_trivially_copyable_v<F>,
                  "capture pointers and numbers only");
    LaunchRaw([](void* object) { (*static_cast<F*>(object))(); }, &fn, sizeof(F));
  }
  // Launch, then wait. An idle cpu stream runs fn on the calling thread: no thread switch.
  virtual void Run(FunctionRef<void()> fn) = 0;
  virtual void Record(Event& event) = 0;
  virtual void Wait(Event& event) = 0;  // later work of this stream waits for the recorded point
  virtual void CopyAsync(void* to, const void* from, size_t bytes, CopyKind kind) = 0;
  virtual void Synchronize() = 0;

  static constexpr size_t kMaxTaskBytes = 64;

 protected:
  virtual void LaunchRaw(void (*call)(void*), const void* object, size_t bytes) = 0;
};

struct StreamOptions {
  int threads = 0;  // compute team of this stream; 0 = all available cores
};

// Thread-safe.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  // From a caching pool: Free keeps the block for the next Allocate of its size class. Aligned to
  // info().alignment_bytes. Throws kOutOfMemory with asked, current and limit figures.
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Free(void* pointer) noexcept = 0;
  virtual void TrimPool() = 0;                    // gives cached blocks back to the system
  virtual void SetMemoryLimit(uint64_t bytes) = 0;  // 0 = none
  virtual std::unique_ptr<Stream> CreateStream(const StreamOptions& options) = 0;
  virtual std::unique_ptr<Event> CreateEvent() = 0;
  virtual MemoryStats memory() const = 0;
  virtual CopyStats copies() const = 0;
  virtual void CountCopy(CopyKind kind, uint64_t bytes) = 0;
};

// "cpu:0", "cpu" (= cpu:0). The same name gives the same device. Throws kNotFound naming the known ones.
std::shared_ptr<Device> OpenDevice(std::string_view name);
std::vector<DeviceInfo> ListDevices();

// A device folder registers one of these; `list` must not fail when the vendor's library is absent.
struct DeviceBackend {
  std::string_view kind;  // the word before ':'
  std::vector<DeviceInfo> (*list)();
  std::shared_ptr<Device> (*open)(int index);
};
struct RegisterDevice {
  explicit RegisterDevice(const DeviceBackend& backend);
};

}  // namespace whimbrel
