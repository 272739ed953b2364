// Parallel loops: each index once, from any thread, nested or not.

#include "whimbrel/base/threads.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace whimbrel {
namespace {

#ifdef _OPENMP
constexpr bool kParallel = true;
#else
constexpr bool kParallel = false;
#endif

using Range = std::pair<int64_t, int64_t>;

std::vector<Range> RangesOf(int64_t count, int64_t grain) {
  std::mutex mutex;
  std::vector<Range> ranges;
  ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    ranges.emplace_back(begin, end);
  });
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

// Ranges follow one another from 0 to count, none shorter than the grain unless it is the only one.
void ExpectCover(const std::vector<Range>& ranges, int64_t count, int64_t grain) {
  int64_t next = 0;
  for (const Range& range : ranges) {
    ASSERT_EQ(range.first, next);
    ASSERT_GT(range.second, range.first);
    ASSERT_TRUE(ranges.size() == 1 || range.second - range.first >= grain);
    next = range.second;
  }
  ASSERT_EQ(next, count);
}

TEST(ParallelFor, CoversEachIndexOnceForManySizesGrainsAndTeams) {
  for (int team : {1, 2, 3, 7}) {
    SetComputeThreads(team);
    for (int64_t count : {1, 2, 3, 7, 8, 100, 1023}) {
      for (int64_t grain : {1, 2, 5, 100, 5000}) {
        const std::vector<Range> ranges = RangesOf(count, grain);
        ASSERT_LE(ranges.size(), static_cast<size_t>(team));
        ExpectCover(ranges, count, grain);
      }
    }
  }
  SetComputeThreads(0);
}

TEST(ParallelFor, SplitsAmongTheWholeTeamWhenThereIsEnough) {
  SetComputeThreads(3);
  EXPECT_EQ(RangesOf(300, 10).size(), kParallel ? 3u : 1u);
  EXPECT_EQ(RangesOf(29, 10).size(), kParallel ? 2u : 1u);
  EXPECT_EQ(RangesOf(19, 10).size(), 1u);
  SetComputeThreads(0);
}

TEST(ParallelFor, DoesNothingForNoIndices) {
  ParallelFor(0, 1, [](int64_t, int64_t) { FAIL(); });
  ParallelFor(-5, 1, [](int64_t, int64_t) { FAIL(); });
}

TEST(ParallelFor, TakesTheLargestCountAndAGrainBelowOne) {
  SetComputeThreads(2);
  const int64_t most = std::numeric_limits<int64_t>::max();
  ExpectCover(RangesOf(most, 1), most, 1);
  ExpectCover(RangesOf(10, 0), 10, 1);
  ExpectCover(RangesOf(10, -3), 10, 1);
  SetComputeThreads(0);
}

TEST(ParallelFor, RunsAShortLoopOnTheCaller) {
  SetComputeThreads(4);
  const auto caller = std::this_thread::get_id();
  ParallelFor(100, 100, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(end - begin, 100);
  });
  SetComputeThreads(0);
}

TEST(ParallelFor, RunsANestedLoopWholeOnTheThreadThatMeetsIt) {
  SetComputeThreads(3);
  std::vector<std::atomic<int>> hits(30 * 40);
  std::atomic<int> inner_calls{0};
  ParallelFor(30, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      ParallelFor(40, 1, [&, row](int64_t first, int64_t last) {
        ++inner_calls;
        for (int64_t col = first; col < last; ++col) ++hits[static_cast<size_t>(row * 40 + col)];
      });
    }
  });
  for (const auto& hit : hits) ASSERT_EQ(hit, 1);
  EXPECT_TRUE(!kParallel || inner_calls == 30) << inner_calls;
  SetComputeThreads(0);
}

TEST(ParallelFor, ServesSeveralCallingThreadsAtOnce) {
  std::vector<std::thread> callers;
  std::vector<int64_t> sums(4);
  for (size_t caller = 0; caller < sums.size(); ++caller) {
    callers.emplace_back([&, caller] {
      SetComputeThreads(static_cast<int>(caller % 2) + 1);
      for (int round = 0; round < 200; ++round) {
        std::atomic<int64_t> sum{0};
        ParallelFor(1000, 16, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) sum += i;
        });
        sums[caller] += sum;
      }
    });
  }
  for (std::thread& thread : callers) thread.join();
  for (int64_t sum : sums) EXPECT_EQ(sum, 200 * 499'500);
}

TEST(ComputeThreads, BelongToTheCallingThread) {
  SetComputeThreads(3);
  std::thread([] {
    SetComputeThreads(2);
    EXPECT_EQ(compute_threads(), kParallel ? 2 : 1);
  }).join();
  EXPECT_EQ(compute_threads(), kParallel ? 3 : 1);
  SetComputeThreads(0);
  EXPECT_EQ(compute_threads(), kParallel ? AvailableCores() : 1);
}

TEST(AvailableCores, IsAtLeastOneAndNoMoreThanTheMachineHas) {
  EXPECT_GE(AvailableCores(), 1);
  EXPECT_LE(AvailableCores(), static_cast<int>(std::thread::hardware_concurrency()));
}

// Each of these runs in a process of its own. Exit code 42: the user's policy was left alone.
[[noreturn]] void EnsureWithAUsersChoice() {
  unsetenv("WHIMBREL_OMP_REEXEC");
  unsetenv("GOMP_SPINCOUNT");
  setenv("OMP_WAIT_POLICY", "passive", 1);
  std::string program = "/bin/false";
  char* argv[] = {program.data(), nullptr};
  EnsureOpenMpWaitPolicy(argv);
  std::_Exit(getenv("GOMP_SPINCOUNT") == nullptr ? 42 : 1);
}

// The new run is this test program asked for its list of tests, which ends with 0.
[[noreturn]] void EnsureWithoutAChoice() {
  unsetenv("WHIMBREL_OMP_REEXEC");
  unsetenv("GOMP_SPINCOUNT");
  unsetenv("OMP_WAIT_POLICY");
  std::string program = "base_test";
  std::string list = "--gtest_list_tests";
  char* argv[] = {program.data(), list.data(), nullptr};
  EnsureOpenMpWaitPolicy(argv);
  std::_Exit(1);
}

// Exit code 43: the marked second run did not start a third.
[[noreturn]] void EnsureTwice() {
  setenv("WHIMBREL_OMP_REEXEC", "1", 1);
  unsetenv("GOMP_SPINCOUNT");
  unsetenv("OMP_WAIT_POLICY");
  std::string program = "/usr/bin/whimbrel";
  char* argv[] = {program.data(), nullptr};
  EnsureOpenMpWaitPolicy(argv);
  EnsureOpenMpWaitPolicy(nullptr);
  std::_Exit(43);
}

class EnsureOpenMpWaitPolicyDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(EnsureOpenMpWaitPolicyDeathTest, LeavesAUsersChoiceAlone) {
  EXPECT_EXIT(EnsureWithAUsersChoice(), testing::ExitedWithCode(42), "");
}

TEST_F(EnsureOpenMpWaitPolicyDeathTest, RunsTheProgramAgain) {
  if (!kParallel) GTEST_SKIP() << "built without OpenMP";
  EXPECT_EXIT(EnsureWithoutAChoice(), testing::ExitedWithCode(0), "");
}

TEST_F(EnsureOpenMpWaitPolicyDeathTest, RunsTheProgramAgainOnlyOnce) {
  EXPECT_EXIT(EnsureTwice(), testing::ExitedWithCode(43), "");
}

}  // namespace
}  // namespace whimbrel
