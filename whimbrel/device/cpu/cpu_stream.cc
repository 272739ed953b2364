// CpuStream: one mutex per stream guards the ring; tasks run outside it.

#include "whimbrel/device/cpu/cpu_stream.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "whimbrel/base/error.h"
#include "whimbrel/base/log.h"
#include "whimbrel/base/threads.h"

namespace whimbrel {
namespace {

// The object comes first in a slot of this alignment: no capture of 64 bytes can ask for more.
struct alignas(Stream::kMaxTaskBytes) TaskSlot {
  std::array<std::byte, Stream::kMaxTaskBytes> object{};
  void (*call)(void*) = nullptr;  // null: wait for `point`
  CpuPoint point;
};

// Gives the calling thread another compute team for a while.
class ComputeThreadsScope {
 public:
  explicit ComputeThreadsScope(int threads)
      : before_(compute_threads()), changed_(before_ != threads) {
    if (changed_) SetComputeThreads(threads);
  }
  ~ComputeThreadsScope() {
    if (changed_) SetComputeThreads(before_);
  }
  ComputeThreadsScope(const ComputeThreadsScope&) = delete;
  ComputeThreadsScope& operator=(const ComputeThreadsScope&) = delete;

 private:
  const int before_;
  const bool changed_;
};

int TeamSize(int threads) {
  if (threads < 0) {
    throw Error(Code::kInvalidArgument, fmt::format("cpu stream: {} threads asked", threads),
                "take 0 for all cores, or a positive number");
  }
  return threads == 0 ? AvailableCores() : threads;
}

CpuEvent& AsCpuEvent(Event& event) {
  auto* const own = dynamic_cast<CpuEvent*>(&event);
  if (own == nullptr) {
    throw Error(Code::kInvalidArgument, "cpu stream: the event belongs to another kind of device",
                "create the event on the stream's device, or synchronize it on the host");
  }
  return *own;
}

}  // namespace

// Tasks have positions 1, 2, ...; task n lies in slot (n - 1) % kRingSlots. Tasks up to `completed`
// are done, tasks up to `launched` are in the ring (or, for one inside Run, on its caller's stack).
struct CpuQueue {
  std::mutex mutex;
  std::condition_variable work;        // the stream's thread waits here
  std::condition_variable progress;    // launchers, synchronizers and other streams wait here
  std::atomic<uint64_t> completed{0};  // written under mutex, read anywhere
  uint64_t launched = 0;               // guarded by mutex, as all below
  bool running_inline = false;         // a caller of Run executes task completed + 1
  bool stopping = false;
  std::thread::id executor;                          // the thread inside a task now
  std::exception_ptr error;                          // the first since the last Synchronize or Run
  std::array<TaskSlot, CpuStream::kRingSlots> ring;  // slots of pending tasks do not change

  bool idle() const { return completed.load(std::memory_order_relaxed) == launched; }
  bool full() const {
    return launched - completed.load(std::memory_order_relaxed) >= CpuStream::kRingSlots;
  }
  void Begin() { executor = std::this_thread::get_id(); }
  void Finish() {
    executor = {};
    completed.fetch_add(1, std::memory_order_release);
    progress.notify_all();
  }
  void Serve(int threads);
};

// Top function of the stream's thread: runs tasks in order until stopping and drained.
void CpuQueue::Serve(int threads) {
  SetComputeThreads(threads);
  std::unique_lock lock(mutex);
  while (true) {
    work.wait(lock, [this] { return idle() ? stopping : !running_inline; });
    if (idle()) return;
    TaskSlot& slot = ring[completed.load(std::memory_order_relaxed) % ring.size()];
    Begin();
    lock.unlock();
    std::exception_ptr thrown;
    try {
      if (slot.call != nullptr) {
        slot.call(slot.object.data());
      } else {
        slot.point.Await();
      }
    } catch (...) {
      thrown = std::current_exception();
    }
    const CpuPoint passed = std::exchange(slot.point, {});
    lock.lock();
    if (thrown && !error) error = std::move(thrown);
    Finish();
  }
}

bool CpuPoint::Reached() const {
  return !queue || queue->completed.load(std::memory_order_acquire) >= position;
}

void CpuPoint::Await() const {
  if (Reached()) return;
  std::unique_lock lock(queue->mutex);
  if (queue->executor == std::this_thread::get_id()) {
    throw Error(Code::kInvalidArgument, "cpu stream: a task waits for its own stream",
                "synchronize outside the task, or record the event before it");
  }
  queue->progress.wait(lock, [this] { return Reached(); });
}

CpuPoint CpuEvent::point() const {
  const std::lock_guard lock(mutex_);
  return point_;
}

void CpuEvent::set_point(CpuPoint point) {
  const std::lock_guard lock(mutex_);
  std::swap(point_, point);
}

CpuStream::CpuStream(const StreamOptions& options, std::shared_ptr<CopyCounters> counters)
    : threads_(TeamSize(options.threads)),
      counters_(std::move(counters)),
      queue_(std::make_shared<CpuQueue>()) {}

CpuStream::~CpuStream() {
  {
    std::unique_lock lock(queue_->mutex);
    queue_->stopping = true;
    queue_->work.notify_one();
    queue_->progress.wait(lock, [this] { return queue_->idle(); });
  }
  if (thread_.joinable()) thread_.join();
  if (queue_->error) {
    LogLine(LogLevel::kWarn,
            "cpu stream: closed with an error that nobody fetched; call Synchronize before");
  }
}

void CpuStream::StartThread() {
  if (thread_.joinable()) return;
  try {
    thread_ = std::thread([queue = queue_, threads = threads_] { queue->Serve(threads); });
  } catch (const std::system_error& cause) {
    throw Error(Code::kResourceExhausted,
                fmt::format("cpu stream: its thread does not start: {}", cause.what()),
                "raise the limit of threads (ulimit -u) or open fewer streams");
  }
}

uint64_t CpuStream::Enqueue(void (*call)(void*), const void* object, size_t bytes, CpuPoint point) {
  WHIMBREL_CHECK(bytes <= kMaxTaskBytes);
  CpuQueue& queue = *queue_;
  std::unique_lock lock(queue.mutex);
  if (queue.full() && queue.executor == std::this_thread::get_id()) {
    throw Error(Code::kResourceExhausted,
                fmt::format("cpu stream: a task launches into its own full ring of {}", kRingSlots),
                "launch from outside the stream");
  }
  queue.progress.wait(lock, [&queue] { return !queue.full(); });
  StartThread();
  TaskSlot& slot = queue.ring[queue.launched % kRingSlots];
  if (bytes > 0) std::memcpy(slot.object.data(), object, bytes);
  slot.call = call;
  slot.point = std::move(point);
  const uint64_t position = ++queue.launched;
  queue.work.notify_one();
  return position;
}

void CpuStream::LaunchRaw(void (*call)(void*), const void* object, size_t bytes) {
  Enqueue(call, object, bytes, {});
}

void CpuStream::Run(FunctionRef<void()> fn) {
  CpuQueue& queue = *queue_;
  std::exception_ptr own_error;
  const auto call = [&fn, &own_error] {
    try {
      fn();
    } catch (...) {
      own_error = std::current_exception();
    }
  };
  std::unique_lock lock(queue.mutex);
  if (queue.executor == std::this_thread::get_id()) {
    lock.unlock();
    fn();
    return;
  }
  if (queue.idle()) {
    ++queue.launched;
    queue.running_inline = true;
    queue.Begin();
    lock.unlock();
    try {
      const ComputeThreadsScope scope(threads_);
      call();
    } catch (...) {  // the scope's: the first question for a thread's team reads files
      own_error = std::current_exception();
    }
    lock.lock();
    queue.running_inline = false;
    queue.Finish();
    queue.work.notify_one();
    lock.unlock();
  } else {
    lock.unlock();
    const void* const object = &call;  // stays where it is until the task is done
    const auto enter = [](void* slot) {
      (*static_cast<decltype(call)*>(*static_cast<const void* const*>(slot)))();
    };
    CpuPoint{queue_, Enqueue(enter, &object, sizeof(object), {})}.Await();
  }
  ThrowKeptError();
  if (own_error) std::rethrow_exception(own_error);
}

void CpuStream::Record(Event& event) {
  CpuEvent& own = AsCpuEvent(event);
  CpuPoint point{queue_, 0};
  {
    const std::lock_guard lock(queue_->mutex);
    point.position = queue_->launched;
  }
  own.set_point(std::move(point));
}

void CpuStream::Wait(Event& event) {
  CpuPoint point = AsCpuEvent(event).point();
  if (point.queue == queue_ || point.Reached()) return;  // a stream is always behind itself
  Enqueue(nullptr, nullptr, 0, std::move(point));
}

void CpuStream::CopyAsync(void* to, const void* from, size_t bytes, CopyKind kind) {
  if (bytes == 0) return;
  Launch([to, from, bytes] { std::memmove(to, from, bytes); });
  counters_->Count(kind, bytes);
}

void CpuStream::Synchronize() {
  CpuPoint point{queue_, 0};
  {
    const std::lock_guard lock(queue_->mutex);
    point.position = queue_->launched;
  }
  point.Await();
  ThrowKeptError();
}

void CpuStream::ThrowKeptError() {
  std::exception_ptr error;
  {
    const std::lock_guard lock(queue_->mutex);
    error = std::exchange(queue_->error, nullptr);
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace whimbrel
