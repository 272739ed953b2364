// What the device layer takes from the heap: nothing while work is launched, and a clean end when
// the heap gives nothing.

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>

#include <gtest/gtest.h>

#include "whimbrel/base/error.h"
#include "whimbrel/device/cpu/cpu_device.h"
#include "whimbrel/device/device.h"

namespace {

std::atomic<int64_t> g_allocations{0};
// The allocation of this thread that fails: 1 = the next, 0 = none.
thread_local int64_t t_fail_in = 0;

void* CountedAllocate(size_t bytes, size_t alignment) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  if (t_fail_in > 0 && --t_fail_in == 0) throw std::bad_alloc();
  void* const pointer =
      alignment <= alignof(std::max_align_t)
          ? std::malloc(bytes)
          : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}

}  // namespace

// Not inlined: g++ would see malloc behind one and free behind the other, and warn of a mismatch.
[[gnu::noinline]] void* operator new(size_t bytes) {
  return CountedAllocate(bytes, 1);
}
[[gnu::noinline]] void* operator new(size_t bytes, std::align_val_t alignment) {
  return CountedAllocate(bytes, static_cast<size_t>(alignment));
}
// The form that does not throw ends here too: a sanitizer minds memory of one family freed by another.
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes == 0 ? 1 : bytes);
}
[[gnu::noinline]] void operator delete(void* pointer) noexcept {
  std::free(pointer);
}
[[gnu::noinline]] void operator delete(void* pointer, size_t) noexcept {
  std::free(pointer);
}
[[gnu::noinline]] void operator delete(void* pointer, std::align_val_t) noexcept {
  std::free(pointer);
}
[[gnu::noinline]] void operator delete(void* pointer, size_t, std::align_val_t) noexcept {
  std::free(pointer);
}

namespace whimbrel {
namespace {

TEST(DeviceHeap, StaysUntouchedWhileWorkIsLaunched) {
  const std::shared_ptr<Device> device = OpenDevice("cpu");
  const auto a = device->CreateStream({.threads = 1});
  const auto b = device->CreateStream({.threads = 1});
  const auto event = device->CreateEvent();
  int count = 0;
  char from[64] = {};
  char to[64];
  const auto step = [&] {
    for (int i = 0; i < 600; ++i) a->Launch([&count] { ++count; });  // more than the ring holds
    a->CopyAsync(to, from, sizeof(to), CopyKind::kDeviceToDevice);
    a->Record(*event);
    b->Wait(*event);
    b->Launch([&count] { ++count; });
    b->Run([&count] { ++count; });
    b->Synchronize();
    a->Run([&count] { ++count; });
    device->Free(device->Allocate(5000));
    device->Free(device->Allocate(5 << 20));
    (void)device->memory();
  };
  step();  // starts the threads and fills the pool
  const int64_t before = g_allocations;
  for (int i = 0; i < 10; ++i) step();
  EXPECT_EQ(g_allocations, before);
  EXPECT_EQ(count, 11 * 603);
}

// Fails the 1st, 2nd, ... heap allocation of `body` until it needs fewer.
void FailEachAllocation(const std::function<void()>& body) {
  for (int64_t n = 1;; ++n) {
    ASSERT_LT(n, 200);
    t_fail_in = n;
    bool failed = false;
    try {
      body();
    } catch (const std::bad_alloc&) {
      failed = true;
    } catch (const Error& error) {
      failed = true;
      EXPECT_EQ(error.code(), Code::kOutOfMemory) << error.what();
    }
    const bool reached = t_fail_in == 0;
    t_fail_in = 0;
    // Not the reverse: the standard library's file streams pass over a missing buffer.
    EXPECT_TRUE(reached || !failed) << "allocation " << n;
    if (!reached) return;
  }
}

TEST(DeviceHeap, MayFailAtAnyPointOfAPoolAllocation) {
  CpuDevice device(OpenDevice("cpu")->info());
  size_t bytes = 64;
  FailEachAllocation([&] {
    bytes *= 2;  // another class each time: never from the cache
    device.Free(device.Allocate(bytes));
  });
  EXPECT_EQ(device.memory().current_bytes, 0u);
  device.TrimPool();
  EXPECT_EQ(device.memory().reserved_bytes, 0u);
}

TEST(DeviceHeap, MayFailWhileStreamsAndEventsAreMadeAndStarted) {
  const std::shared_ptr<Device> device = OpenDevice("cpu");
  FailEachAllocation([&] {
    const auto event = device->CreateEvent();
    const auto stream = device->CreateStream({.threads = 1});
    int count = 0;
    stream->Launch([&count] { ++count; });
    stream->Record(*event);
    event->Synchronize();
    stream->Run([&count] { ++count; });
    EXPECT_EQ(count, 2);
  });
}

TEST(DeviceHeap, MayFailWhileDevicesAreListedAndOpened) {
  FailEachAllocation([] { EXPECT_FALSE(ListDevices().empty()); });
  FailEachAllocation([] { EXPECT_EQ(OpenDevice("cpu")->info().name, "cpu:0"); });
  EXPECT_EQ(OpenDevice("cpu"), OpenDevice("cpu:0"));
}

}  // namespace
}  // namespace whimbrel
