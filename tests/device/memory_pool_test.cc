// MemoryPool: size classes, reuse, counters, limit, and what happens when the system gives nothing.

#include "whimbrel/device/cpu/memory_pool.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "whimbrel/base/error.h"

namespace whimbrel {
namespace {

// Counts what is out, and gives nothing at the n-th Take (1 = the first; 0 = never) and while
// `empty`.
class FailingMemory final : public SystemMemory {
 public:
  void* Take(size_t bytes) noexcept override {
    ++takes;
    if (empty || takes == fail_at) return nullptr;
    void* const pointer = HostMemory().Take(bytes);
    outstanding[pointer] = bytes;
    return pointer;
  }
  void GiveBack(void* pointer, size_t bytes) noexcept override {
    EXPECT_EQ(outstanding.at(pointer), bytes);
    outstanding.erase(pointer);
    HostMemory().GiveBack(pointer, bytes);
  }

  int takes = 0;
  int fail_at = 0;
  bool empty = false;
  std::map<void*, size_t> outstanding;
};

Error OutOfMemoryOf(MemoryPool& pool, size_t bytes) {
  try {
    pool.Free(pool.Allocate(bytes));
  } catch (const Error& error) {
    return error;
  }
  return Error(Code::kOk, "nothing was thrown");
}

TEST(MemoryPool, LosesAtMostAnEighthToASizeClass) {
  EXPECT_EQ(MemoryPool::BlockBytes(0), 64);
  EXPECT_EQ(MemoryPool::BlockBytes(64), 64);
  EXPECT_EQ(MemoryPool::BlockBytes(65), 128);
  EXPECT_EQ(MemoryPool::BlockBytes(512), 512);
  EXPECT_EQ(MemoryPool::BlockBytes(513), 576);
  EXPECT_EQ(MemoryPool::BlockBytes((1 << 20) + 1), (1 << 20) + (1 << 17));
  EXPECT_EQ(MemoryPool::BlockBytes(MemoryPool::kMaxBlockBytes), MemoryPool::kMaxBlockBytes);
  size_t before = 0;
  for (size_t bytes = 1; bytes < (size_t{1} << 40); bytes += bytes / 7 + 1) {
    const size_t block = MemoryPool::BlockBytes(bytes);
    EXPECT_GE(block, bytes);
    EXPECT_LE(block - bytes, std::max<size_t>(63, bytes / 8)) << bytes;
    EXPECT_EQ(block % 64, 0u);
    EXPECT_EQ(MemoryPool::BlockBytes(block), block);
    EXPECT_GE(block, before);
    before = block;
  }
}

TEST(MemoryPool, GivesAlignedWritableBlocksOfEverySize) {
  MemoryPool pool("test", HostMemory());
  std::vector<void*> blocks;
  for (const size_t bytes :
       {0u, 1u, 63u, 64u, 65u, 1000u, 4097u, (1u << 20) - 1, 1u << 20, 3000001u}) {
    void* const block = pool.Allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % MemoryPool::kAlignmentBytes, 0u) << bytes;
    std::memset(block, 0x5a, MemoryPool::BlockBytes(bytes));
    blocks.push_back(block);
  }
  EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), blocks.size());
  for (void* const block : blocks) pool.Free(block);
  pool.Free(nullptr);
  EXPECT_EQ(pool.stats().current_bytes, 0u);
}

TEST(MemoryPool, ReusesAFreedBlockForItsSizeClass) {
  FailingMemory system;
  MemoryPool pool("test", system);
  void* const first = pool.Allocate(1000);
  pool.Free(first);
  EXPECT_EQ(pool.Allocate(1010), first);    // both 1024
  EXPECT_NE(pool.Allocate(1010), nullptr);  // the first is out
  EXPECT_EQ(system.takes, 2);
  void* const large = pool.Allocate(5 << 20);
  pool.Free(large);
  EXPECT_EQ(pool.Allocate((5 << 20) - 1), large);
  EXPECT_EQ(pool.stats().system_allocations, 3u);
  EXPECT_EQ(pool.stats().allocations, 5u);
  for (const auto& [pointer, bytes] : std::map(system.outstanding)) pool.Free(pointer);
}

TEST(MemoryPool, CountsCurrentPeakAndReserved) {
  FailingMemory system;
  MemoryPool pool("test", system);
  void* const a = pool.Allocate(100);   // 128
  void* const b = pool.Allocate(1000);  // 1024
  EXPECT_EQ(pool.stats().current_bytes, 1152u);
  EXPECT_EQ(pool.stats().peak_bytes, 1152u);
  EXPECT_EQ(pool.stats().reserved_bytes, 1152u);
  pool.Free(b);
  EXPECT_EQ(pool.stats().current_bytes, 128u);
  EXPECT_EQ(pool.stats().peak_bytes, 1152u);
  EXPECT_EQ(pool.stats().reserved_bytes, 1152u);
  pool.Trim();
  EXPECT_EQ(pool.stats().reserved_bytes, 128u);
  EXPECT_EQ(system.outstanding.size(), 1u);
  pool.Free(a);
}

TEST(MemoryPool, ReportsFragmentationOfItsFreeBytes) {
  MemoryPool pool("test", HostMemory());
  EXPECT_EQ(pool.stats().fragmentation_ratio, 0);
  void* const a = pool.Allocate(1024);
  void* const b = pool.Allocate(1024);
  void* const c = pool.Allocate(2048);
  EXPECT_EQ(pool.stats().fragmentation_ratio, 0);  // nothing is free
  pool.Free(c);
  EXPECT_EQ(pool.stats().fragmentation_ratio, 0);  // one block
  pool.Free(a);
  pool.Free(b);
  EXPECT_DOUBLE_EQ(pool.stats().fragmentation_ratio, 0.5);  // 2048 of 4096
  pool.Trim();
  EXPECT_EQ(pool.stats().fragmentation_ratio, 0);
}

TEST(MemoryPool, RefusesWhatBreaksTheLimitAndNamesTheFigures) {
  MemoryPool pool("cpu:0", HostMemory());
  pool.SetLimit(4096);
  void* const whole = pool.Allocate(4096);  // exactly the limit
  const Error error = OutOfMemoryOf(pool, 100);
  EXPECT_EQ(error.code(), Code::kOutOfMemory);
  EXPECT_EQ(std::string(error.what()),
            "cpu:0 memory: 100 bytes asked, 4096 handed out, 4096 reserved, limit 4096 bytes: the "
            "limit is reached");
  EXPECT_FALSE(error.hint().empty());
  pool.SetLimit(0);
  EXPECT_EQ(OutOfMemoryOf(pool, 100).code(), Code::kOk);
  pool.Free(whole);
}

TEST(MemoryPool, GivesUpCachedBlocksBeforeTheLimitRefuses) {
  FailingMemory system;
  MemoryPool pool("test", system);
  pool.SetLimit(4096);
  pool.Free(pool.Allocate(3072));
  pool.Free(pool.Allocate(1024));
  pool.Free(pool.Allocate(2048));  // another class: the largest cached block goes
  EXPECT_LE(pool.stats().reserved_bytes, 4096u);
  EXPECT_EQ(system.outstanding.size(), 2u);
  pool.SetLimit(1000);  // below what is cached
  EXPECT_LE(pool.stats().reserved_bytes, 1000u);
  EXPECT_EQ(OutOfMemoryOf(pool, 1024).code(), Code::kOutOfMemory);
}

TEST(MemoryPool, RefusesAbsurdSizesWithoutAskingTheSystem) {
  FailingMemory system;
  MemoryPool pool("test", system);
  EXPECT_EQ(OutOfMemoryOf(pool, SIZE_MAX).code(), Code::kOutOfMemory);
  EXPECT_EQ(OutOfMemoryOf(pool, MemoryPool::kMaxBlockBytes + 1).code(), Code::kOutOfMemory);
  EXPECT_EQ(system.takes, 0);
}

TEST(MemoryPool, GivesCachedBlocksBackWhenTheSystemHasNoMore) {
  FailingMemory system;
  MemoryPool pool("test", system);
  pool.Free(pool.Allocate(1024));
  system.fail_at = 2;
  pool.Free(pool.Allocate(2048));  // second Take fails, the 1024 go back, the third succeeds
  EXPECT_EQ(system.takes, 3);
  EXPECT_EQ(pool.stats().reserved_bytes, 2048u);
}

TEST(MemoryPool, StaysWholeWhicheverSystemAllocationFails) {
  bool succeeded = false;
  for (int fail_at = 1; !succeeded; ++fail_at) {
    ASSERT_LT(fail_at, 10);
    FailingMemory system;
    {
      MemoryPool pool("test", system);
      std::vector<void*> blocks;
      system.fail_at = fail_at;
      try {
        for (const size_t bytes : {100, 5000, 2 << 20}) blocks.push_back(pool.Allocate(bytes));
        succeeded = true;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::kOutOfMemory);
        EXPECT_EQ(blocks.size(), static_cast<size_t>(fail_at - 1));
        EXPECT_EQ(pool.stats().allocations, blocks.size());
      }
      EXPECT_EQ(system.outstanding.size(), blocks.size());
      for (void* const block : blocks) pool.Free(block);
      EXPECT_EQ(pool.stats().current_bytes, 0u);
    }
    EXPECT_TRUE(system.outstanding.empty());
  }
}

TEST(MemoryPool, ServesThreadsAtOnce) {
  MemoryPool pool("test", HostMemory());
  constexpr int thread_count = 4;
  constexpr int rounds = 500;
  std::vector<std::thread> threads;
  threads.reserve(thread_count);
  for (int id = 0; id < thread_count; ++id) {
    threads.emplace_back([&pool, id] {
      for (int round = 0; round < rounds; ++round) {
        const size_t bytes = 64 + static_cast<size_t>(round * 37 % 4000);
        void* const block = pool.Allocate(bytes);
        std::memset(block, id, bytes);
        if (round % 100 == 0) pool.Trim();
        EXPECT_EQ(static_cast<unsigned char*>(block)[bytes - 1], id);
        pool.Free(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.stats().current_bytes, 0u);
  EXPECT_EQ(pool.stats().allocations, static_cast<uint64_t>(thread_count * rounds));
}

TEST(MemoryPoolDeathTest, EndsTheProcessWhenABlockIsFreedTwice) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        MemoryPool pool("test", HostMemory());
        void* const block = pool.Allocate(64);
        pool.Free(block);
        pool.Free(block);
      },
      "");
}

}  // namespace
}  // namespace whimbrel
