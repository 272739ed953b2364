// memory_planner: offsets in one arena for blocks that live over known spans of steps.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace whimbrel {

// One block: alive from step `first` to step `last`, both included.
struct MemoryBlock {
  size_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct MemoryPlan {
  std::vector<size_t> offsets;  // per block, multiples of the alignment
  size_t arena_bytes = 0;
  size_t lower_bound_bytes = 0;  // most bytes alive at one step: no plan can be smaller
};

// Greedy by size: the largest block first, each at the lowest offset where nothing alive at the
// same time lies (Pisarchyk & Lee 2020, "Efficient Memory Management for Deep Neural Net
// Inference", section 5.2).
MemoryPlan PlanMemory(std::span<const MemoryBlock> blocks, size_t alignment);

}  // namespace whimbrel
