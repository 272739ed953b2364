// Greedy-by-size placement.

#include "whimbrel/graph/memory_planner.h"

#include <algorithm>
#include <numeric>

#include "whimbrel/base/error.h"

namespace whimbrel {

namespace {

// Far beyond any machine; sums of blocks below it cannot leave 64 bits.
constexpr size_t kMaxArenaBytes = size_t{1} << 50;

}  // namespace

MemoryPlan PlanMemory(std::span<const MemoryBlock> blocks, size_t alignment) {
  for (const MemoryBlock& block : blocks) {
    if (block.bytes <= kMaxArenaBytes) continue;
    throw Error(Code::kOutOfMemory,
                "one tensor of this model has " + std::to_string(block.bytes) + " bytes",
                "give smaller input shapes (--shape)");
  }
  const auto round_up = [&](size_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
  };
  MemoryPlan plan;
  plan.offsets.assign(blocks.size(), 0);
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });

  std::vector<size_t> placed;  // by offset
  for (size_t index : order) {
    const MemoryBlock& block = blocks[index];
    size_t offset = 0;
    for (size_t other : placed) {
      if (blocks[other].last < block.first || block.last < blocks[other].first) continue;
      if (plan.offsets[other] >= offset + round_up(block.bytes)) break;
      offset = std::max(offset, plan.offsets[other] + round_up(blocks[other].bytes));
    }
    if (offset > kMaxArenaBytes) {
      throw Error(Code::kOutOfMemory,
                  "the model's tensors need more than " + std::to_string(offset) + " bytes",
                  "give smaller input shapes (--shape)");
    }
    plan.offsets[index] = offset;
    plan.arena_bytes = std::max(plan.arena_bytes, offset + round_up(block.bytes));
    const auto at = std::upper_bound(placed.begin(), placed.end(), offset,
                                     [&](size_t o, size_t p) { return o < plan.offsets[p]; });
    placed.insert(at, index);
  }

  int last_step = -1;
  for (const MemoryBlock& block : blocks) last_step = std::max(last_step, block.last);
  std::vector<ptrdiff_t> change(static_cast<size_t>(last_step + 2), 0);
  for (const MemoryBlock& block : blocks) {
    change[static_cast<size_t>(std::max(block.first, 0))] +=
        static_cast<ptrdiff_t>(round_up(block.bytes));
    change[static_cast<size_t>(block.last + 1)] -= static_cast<ptrdiff_t>(round_up(block.bytes));
  }
  ptrdiff_t alive = 0;
  for (ptrdiff_t c : change) {
    alive += c;
    plan.lower_bound_bytes = std::max(plan.lower_bound_bytes, static_cast<size_t>(alive));
  }
  return plan;
}

}  // namespace whimbrel
