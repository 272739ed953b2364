// CpuStream and CpuEvent: a fixed ring of tasks served by one thread per stream; an event is a
// position in a ring.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "whimbrel/device/copy_counters.h"
#include "whimbrel/device/device.h"

namespace whimbrel {

struct CpuQueue;

// "The first `position` tasks of `queue` are done." Shares the queue, so that it may outlive the
// stream.
struct CpuPoint {
  std::shared_ptr<CpuQueue> queue;  // null: reached
  uint64_t position = 0;

  bool Reached() const;
  void Await() const;  // throws kInvalidArgument when a task waits for its own end
};

class CpuEvent final : public Event {
 public:
  bool Done() const override { return point().Reached(); }
  void Synchronize() override { point().Await(); }

  CpuPoint point() const;
  void set_point(CpuPoint point);

 private:
  mutable std::mutex mutex_;
  CpuPoint point_;  // guarded by mutex_
};

class CpuStream final : public Stream {
 public:
  // Tasks that fit in the ring; a Launch beyond waits until one is done.
  static constexpr size_t kRingSlots = 256;

  // The thread starts with the first Launch. Throws kInvalidArgument for a negative thread count.
  CpuStream(const StreamOptions& options, std::shared_ptr<CopyCounters> counters);
  // Waits for all tasks. An error that nobody fetched is logged.
  ~CpuStream() override;
  CpuStream(const CpuStream&) = delete;
  CpuStream& operator=(const CpuStream&) = delete;

  // fn always runs; the earliest error is thrown: one kept from a Launch before, else fn's own.
  // Inside a task of this stream fn is simply called.
  void Run(FunctionRef<void()> fn) override;
  void Record(Event& event) override;
  void Wait(Event& event) override;
  void CopyAsync(void* to, const void* from, size_t bytes, CopyKind kind) override;
  // Waits for what was launched before the call, not for what other threads add meanwhile.
  void Synchronize() override;

 protected:
  void LaunchRaw(void (*call)(void*), const void* object, size_t bytes) override;

 private:
  // Puts one task in the ring (`call`), or a wait for `point` when `call` is null. Gives its
  // position.
  uint64_t Enqueue(void (*call)(void*), const void* object, size_t bytes, CpuPoint point);
  void StartThread();
  void ThrowKeptError();

  const int threads_;
  const std::shared_ptr<CopyCounters> counters_;
  const std::shared_ptr<CpuQueue> queue_;
  std::thread thread_;  // guarded by queue_->mutex until the destructor
};

}  // namespace whimbrel
