// Streams and events of the cpu device: order, overlap, exceptions, a full ring, inline runs.

#include "whimbrel/device/cpu/cpu_stream.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "whimbrel/base/error.h"
#include "whimbrel/base/threads.h"

namespace whimbrel {
namespace {

constexpr std::chrono::seconds kPatience(20);  // only a failing test waits that long

// Opens once; a wait that never ends fails the test instead of hanging it.
class Gate {
 public:
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool Wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;  // guarded by mutex_
};

std::unique_ptr<Stream> NewStream(int threads = 1) {
  return OpenDevice("cpu")->CreateStream({.threads = threads});
}
std::unique_ptr<Event> NewEvent() {
  return OpenDevice("cpu")->CreateEvent();
}

TEST(CpuStream, RunsTasksInOrder) {
  const auto stream = NewStream();
  std::vector<int> seen;
  for (int i = 0; i < 1000; ++i) stream->Launch([&seen, i] { seen.push_back(i); });
  stream->Synchronize();
  ASSERT_EQ(seen.size(), 1000u);
  EXPECT_TRUE(std::ranges::is_sorted(seen));
}

TEST(CpuStream, OverlapsWithAnotherStream) {
  // Each task opens its gate and waits for the other's: both pass only when both run at once.
  const auto a = NewStream();
  const auto b = NewStream();
  Gate in_a, in_b;
  std::atomic<int> met = 0;
  a->Launch([&] {
    in_a.Open();
    met += in_b.Wait();
  });
  b->Launch([&] {
    in_b.Open();
    met += in_a.Wait();
  });
  a->Synchronize();
  b->Synchronize();
  EXPECT_EQ(met, 2);
}

TEST(CpuStream, LaunchDoesNotWaitForTheTask) {
  const auto stream = NewStream();
  Gate gate;
  std::atomic<bool> passed = false;
  stream->Launch([&] { passed = gate.Wait(); });
  EXPECT_FALSE(passed);
  gate.Open();
  stream->Synchronize();
  EXPECT_TRUE(passed);
}

TEST(CpuStream, TakesACaptureOfTheLargestSizeAndAlignment) {
  struct alignas(64) Capture {
    char text[64];
  };
  static_assert(sizeof(Capture) == Stream::kMaxTaskBytes);
  Capture capture{"whole"};
  static std::string seen;
  static uintptr_t address;
  struct Task {
    Capture capture;
    void operator()() {
      seen = capture.text;
      address = reinterpret_cast<uintptr_t>(this);
    }
  };
  const auto stream = NewStream();
  stream->Launch(Task{capture});
  stream->Synchronize();
  EXPECT_EQ(seen, "whole");
  EXPECT_EQ(address % 64, 0u);
}

TEST(CpuStream, DrainsWhenItIsDestroyed) {
  int count = 0;
  {
    const auto stream = NewStream();
    for (int i = 0; i < 100; ++i) stream->Launch([&count] { ++count; });
  }
  EXPECT_EQ(count, 100);
  NewStream().reset();  // never launched: no thread to end
}

TEST(CpuStream, BlocksTheLauncherWhileTheRingIsFull) {
  const auto stream = NewStream();
  Gate gate;
  std::atomic<int> done = 0;
  std::atomic<int> launched = 0;
  stream->Launch([&] { EXPECT_TRUE(gate.Wait()); });
  constexpr int tasks = 2 * CpuStream::kRingSlots;
  std::thread launcher([&] {
    for (int i = 0; i < tasks; ++i) {
      stream->Launch([&done] { ++done; });
      ++launched;
    }
  });
  constexpr int fitting = CpuStream::kRingSlots - 1;  // one slot is the waiting task's
  while (launched < fitting) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(launched, fitting);
  gate.Open();
  launcher.join();
  stream->Synchronize();
  EXPECT_EQ(done, tasks);
}

TEST(CpuStream, RefusesATaskThatOverfillsItsOwnRing) {
  const auto stream = NewStream();
  stream->Launch([&stream] {
    for (size_t i = 0; i < CpuStream::kRingSlots; ++i) stream->Launch([] {});
  });
  try {
    stream->Synchronize();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kResourceExhausted);
  }
}

TEST(CpuStream, RefusesATaskThatWaitsForItsOwnStream) {
  const auto stream = NewStream();
  stream->Launch([&stream] { stream->Synchronize(); });
  EXPECT_THROW(stream->Synchronize(), Error);
  EXPECT_THROW(stream->Run([&stream] { stream->Synchronize(); }), Error);
  stream->Synchronize();
}

TEST(CpuStream, RefusesANegativeThreadCount) {
  EXPECT_THROW(NewStream(-1), Error);
}

TEST(CpuStream, TakesTasksOfManyThreads) {
  const auto stream = NewStream();
  int count = 0;  // touched by the stream's tasks alone
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int id = 0; id < 4; ++id) {
    threads.emplace_back([&stream, &count] {
      for (int i = 0; i < 200; ++i) {
        stream->Launch([&count] { ++count; });
        if (i % 50 == 0) stream->Run([&count] { ++count; });
        if (i % 70 == 0) stream->Synchronize();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stream->Synchronize();
  EXPECT_EQ(count, 4 * 204);
}

TEST(CpuStreamRun, StaysOnTheCallingThreadWhenIdle) {
  const auto stream = NewStream();
  std::thread::id ran_on;
  stream->Run([&ran_on] { ran_on = std::this_thread::get_id(); });
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(CpuStreamRun, WaitsForEarlierTasksWhenBusy) {
  const auto stream = NewStream();
  Gate gate;
  int steps = 0;
  stream->Launch([&] {
    EXPECT_TRUE(gate.Wait());
    steps = 1;
  });
  std::thread opener([&gate] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    gate.Open();
  });
  int seen = -1;
  std::thread::id ran_on;
  stream->Run([&] {
    seen = steps;
    ran_on = std::this_thread::get_id();
  });
  EXPECT_EQ(seen, 1);
  EXPECT_NE(ran_on, std::this_thread::get_id());
  opener.join();
}

TEST(CpuStreamRun, HoldsBackTasksLaunchedMeanwhile) {
  const auto stream = NewStream();
  bool first_done = false;
  bool in_order = false;
  stream->Run([&] {
    stream->Launch([&] { in_order = first_done; });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    first_done = true;
  });
  stream->Synchronize();
  EXPECT_TRUE(in_order);
}

TEST(CpuStreamRun, CallsAtOnceInsideATask) {
  const auto stream = NewStream();
  int calls = 0;
  stream->Run([&] { stream->Run([&] { ++calls; }); });
  stream->Launch([&] { stream->Run([&] { ++calls; }); });
  stream->Synchronize();
  EXPECT_EQ(calls, 2);
}

TEST(CpuStreamRun, UsesTheStreamsComputeThreadsAndRestoresTheCallers) {
  const auto stream = NewStream(3);
  SetComputeThreads(1);
  const int before = compute_threads();
  int inside = 0;
  const int expected = [] {  // what 3 threads are on this build: 1 without OpenMP
    SetComputeThreads(3);
    const int count = compute_threads();
    SetComputeThreads(1);
    return count;
  }();
  stream->Run([&inside] { inside = compute_threads(); });
  EXPECT_EQ(inside, expected);
  EXPECT_EQ(compute_threads(), before);
  EXPECT_THROW(stream->Run([] { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(compute_threads(), before);
  stream->Launch([&inside] { inside = -compute_threads(); });
  stream->Synchronize();
  EXPECT_EQ(inside, -expected);
  SetComputeThreads(0);
}

TEST(CpuStreamError, ComesOutOfTheNextSynchronizeOnce) {
  const auto stream = NewStream();
  int later = 0;
  stream->Launch([] { throw std::runtime_error("first"); });
  stream->Launch([] { throw std::runtime_error("second"); });
  stream->Launch([&later] { later = 1; });
  try {
    stream->Synchronize();
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
  EXPECT_EQ(later, 1);
  stream->Synchronize();
}

TEST(CpuStreamError, ComesOutOfTheNextRunOnceAfterItsCall) {
  const auto stream = NewStream();
  const auto event = NewEvent();
  stream->Launch([] { throw std::runtime_error("launched"); });
  stream->Record(*event);
  event->Synchronize();  // idle now: Run goes inline
  bool ran = false;
  EXPECT_THROW(stream->Run([&ran] { ran = true; }), std::runtime_error);
  EXPECT_TRUE(ran);
  stream->Run([] {});
}

TEST(CpuStreamError, OfRunComesOutOfRunInlineAndQueued) {
  const auto stream = NewStream();
  EXPECT_THROW(stream->Run([] { throw std::runtime_error("inline"); }), std::runtime_error);
  Gate gate;
  stream->Launch([&gate] { EXPECT_TRUE(gate.Wait()); });
  std::thread opener([&gate] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    gate.Open();
  });
  EXPECT_THROW(stream->Run([] { throw std::runtime_error("queued"); }), std::runtime_error);
  opener.join();
  stream->Synchronize();
}

TEST(CpuStreamError, IsDroppedWithTheStreamWhenNobodyAsks) {
  const auto stream = NewStream();
  stream->Launch([] { throw std::runtime_error("unheard"); });
}

TEST(CpuEvent, IsDoneBeforeTheFirstRecord) {
  const auto event = NewEvent();
  EXPECT_TRUE(event->Done());
  event->Synchronize();
  NewStream()->Wait(*event);
}

TEST(CpuEvent, FollowsItsStream) {
  const auto stream = NewStream();
  const auto event = NewEvent();
  stream->Record(*event);
  EXPECT_TRUE(event->Done());  // nothing was before it
  Gate gate;
  int value = 0;
  stream->Launch([&] {
    EXPECT_TRUE(gate.Wait());
    value = 7;
  });
  stream->Record(*event);
  EXPECT_FALSE(event->Done());
  gate.Open();
  event->Synchronize();
  EXPECT_TRUE(event->Done());
  EXPECT_EQ(value, 7);
}

TEST(CpuEvent, OrdersTwoStreams) {
  const auto producer = NewStream();
  const auto consumer = NewStream();
  const auto filled = NewEvent();
  const auto drained = NewEvent();
  int shared = 0;
  int wrong = 0;
  for (int round = 1; round <= 200; ++round) {  // the two events are used again and again
    producer->Wait(*drained);
    producer->Launch([&shared, round] { shared = round; });
    producer->Record(*filled);
    consumer->Wait(*filled);
    consumer->Launch([&shared, &wrong, round] { wrong += shared != round; });
    consumer->Record(*drained);
  }
  consumer->Synchronize();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(shared, 200);
}

TEST(CpuEvent, KeepsAnEarlierWaitAtThePointOfItsTime) {
  const auto slow = NewStream();
  const auto quick = NewStream();
  const auto waiting = NewStream();
  const auto event = NewEvent();
  Gate gate;
  std::atomic<bool> slow_done = false;
  std::atomic<bool> saw_slow_done = false;
  slow->Launch([&] {
    EXPECT_TRUE(gate.Wait());
    slow_done = true;
  });
  slow->Record(*event);
  waiting->Wait(*event);
  waiting->Launch([&] { saw_slow_done = slow_done.load(); });
  quick->Launch([] {});
  quick->Record(*event);  // moves the point: done soon, but `waiting` still waits for `slow`
  event->Synchronize();
  EXPECT_TRUE(event->Done());
  gate.Open();
  waiting->Synchronize();
  EXPECT_TRUE(saw_slow_done);
}

TEST(CpuEvent, OutlivesItsStreamAndMayDieBeforeTheWaitIsOver) {
  auto stream = NewStream();
  const auto other = NewStream();
  auto event = NewEvent();
  const auto kept = NewEvent();
  Gate gate;
  int value = 0;
  int seen = 0;
  stream->Launch([&] {
    EXPECT_TRUE(gate.Wait());
    value = 1;
  });
  stream->Record(*event);
  stream->Record(*kept);
  other->Wait(*event);
  other->Launch([&] { seen = value; });
  event.reset();
  gate.Open();
  stream.reset();
  EXPECT_TRUE(kept->Done());
  other->Synchronize();
  EXPECT_EQ(seen, 1);
}

TEST(CpuEvent, OfItsOwnStreamNeedsNoWait) {
  const auto stream = NewStream();
  const auto event = NewEvent();
  stream->Launch([] {});
  stream->Record(*event);
  stream->Wait(*event);
  stream->Synchronize();
}

TEST(CpuStream, RefusesAForeignEvent) {
  class Foreign final : public Event {
   public:
    bool Done() const override { return true; }
    void Synchronize() override {}
  } foreign;
  const auto stream = NewStream();
  EXPECT_THROW(stream->Record(foreign), Error);
  EXPECT_THROW(stream->Wait(foreign), Error);
}

}  // namespace
}  // namespace whimbrel
