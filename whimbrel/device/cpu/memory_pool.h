// MemoryPool: aligned blocks by size class, kept after Free for the next Allocate of their class,
// with counters and a limit.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "whimbrel/device/device.h"

namespace whimbrel {

// Where a pool takes its blocks from; tests put one in that fails. Called under the pool's mutex.
class SystemMemory {
 public:
  virtual ~SystemMemory() = default;
  virtual void* Take(size_t bytes) noexcept = 0;  // null when there is none
  virtual void GiveBack(void* pointer, size_t bytes) noexcept = 0;
};

// Host memory: aligned_alloc below 1 MiB; mmap from there on, so that TrimPool really shrinks the
// process (malloc keeps what it got) and pages cost nothing before their first use.
SystemMemory& HostMemory();

// Thread-safe. The bookkeeping lies beside the blocks and not in them: the memory may be one that
// the host cannot read, a limit of N admits a block of N, and an overrun does not break the pool.
class MemoryPool {
 public:
  static constexpr size_t kAlignmentBytes = 64;
  static constexpr size_t kMaxBlockBytes = size_t{1} << 46;

  // `name` goes into messages. `system` outlives the pool.
  MemoryPool(std::string name, SystemMemory& system);
  ~MemoryPool();  // blocks still handed out are not given back
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // At least `bytes` (0 gives a block too), contents undefined. Throws kOutOfMemory; nothing is
  // changed then, except that cached blocks may have gone back to the system.
  void* Allocate(size_t bytes);
  void Free(
      void* pointer) noexcept;  // null is fine; a pointer that is not handed out ends the process
  void Trim() noexcept;
  // On the bytes taken from the system. Cached blocks are given up before an Allocate fails.
  void SetLimit(uint64_t bytes);  // 0 = none
  MemoryStats stats() const;

  // The size of the block that `bytes` gets: multiples of 64 to 512, then eight classes per
  // doubling, so that at most an eighth is lost.
  static size_t BlockBytes(size_t bytes);

 private:
  // 8 classes to 512 bytes, 8 for each doubling from 2^9 to 2^46.
  static constexpr size_t kClasses = 8 + 8 * (46 - 9);

  struct Block {
    void* pointer = nullptr;
    size_t bytes = 0;
    size_t size_class = 0;
    bool handed_out = false;
    Block* next_cached = nullptr;
  };
  struct SizeClass {
    size_t index;
    size_t bytes;
  };

  static SizeClass ClassOf(size_t bytes);
  Block& TakeFromSystem(const SizeClass& wanted, size_t asked);
  void ReleaseCached(uint64_t reserved_target) noexcept;  // largest blocks first
  [[noreturn]] void ThrowOutOfMemory(size_t asked, const char* reason) const;

  const std::string name_;
  SystemMemory& system_;
  mutable std::mutex mutex_;  // guards all below
  std::unordered_map<const void*, Block> blocks_;
  std::array<Block*, kClasses> cached_{};  // heads of lists through next_cached
  uint64_t cached_bytes_ = 0;
  uint64_t limit_bytes_ = 0;
  MemoryStats stats_;  // fragmentation_ratio is filled on request
};

}  // namespace whimbrel
