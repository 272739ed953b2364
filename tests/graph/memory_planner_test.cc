// Offsets: blocks alive together never overlap, and the arena is between bound and sum.

#include "whimbrel/graph/memory_planner.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "whimbrel/base/error.h"

namespace whimbrel {
namespace {

void Check(const std::vector<MemoryBlock>& blocks, size_t alignment) {
  const MemoryPlan plan = PlanMemory(blocks, alignment);
  ASSERT_EQ(plan.offsets.size(), blocks.size());
  size_t sum = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    ASSERT_EQ(plan.offsets[i] % alignment, 0U);
    ASSERT_LE(plan.offsets[i] + blocks[i].bytes, plan.arena_bytes);
    sum += (blocks[i].bytes + alignment - 1) / alignment * alignment;
    for (size_t k = 0; k < i; ++k) {
      if (blocks[i].last < blocks[k].first || blocks[k].last < blocks[i].first) continue;
      if (blocks[i].bytes == 0 || blocks[k].bytes == 0) continue;
      const bool apart = plan.offsets[i] + blocks[i].bytes <= plan.offsets[k] ||
                         plan.offsets[k] + blocks[k].bytes <= plan.offsets[i];
      ASSERT_TRUE(apart) << "blocks " << i << " and " << k;
    }
  }
  EXPECT_LE(plan.lower_bound_bytes, plan.arena_bytes);
  EXPECT_LE(plan.arena_bytes, sum);
}

TEST(MemoryPlanner, BlocksAliveTogetherNeverOverlap) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::vector<MemoryBlock> blocks(random() % 60);
    for (MemoryBlock& b : blocks) {
      b.bytes = random() % 4 == 0 ? 0 : random() % 5000;
      b.first = static_cast<int>(random() % 30);
      b.last = b.first + static_cast<int>(random() % 8);
    }
    Check(blocks, size_t{1} << (random() % 9));
  }
}

TEST(MemoryPlanner, AChainNeedsTwoBlocksOnly) {
  std::vector<MemoryBlock> blocks;
  for (int i = 0; i < 20; ++i) blocks.push_back({1024, i, i + 1});
  const MemoryPlan plan = PlanMemory(blocks, 64);
  EXPECT_EQ(plan.arena_bytes, 2048U);
  EXPECT_EQ(plan.lower_bound_bytes, 2048U);
}

TEST(MemoryPlanner, NothingToPlaceTakesNothing) {
  EXPECT_EQ(PlanMemory({}, 64).arena_bytes, 0U);
  const std::vector<MemoryBlock> empty{{0, 0, 5}, {0, 1, 2}};
  EXPECT_EQ(PlanMemory(empty, 64).arena_bytes, 0U);
}

TEST(MemoryPlanner, SumsThatLeave64BitsAreOutOfMemory) {
  const std::vector<MemoryBlock> huge(16, MemoryBlock{size_t{1} << 61, 0, 1});
  const std::vector<MemoryBlock> many(4096, MemoryBlock{size_t{1} << 50, 0, 1});
  for (const auto& blocks : {huge, many}) {
    try {
      PlanMemory(blocks, 64);
      FAIL() << "no error came";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kOutOfMemory) << e.what();
    }
  }
}

}  // namespace
}  // namespace whimbrel
