// MemoryPool and the host memory below it.

#include "whimbrel/device/cpu/memory_pool.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>
#include <sys/mman.h>
#include <utility>

#include <fmt/format.h>

#include "whimbrel/base/error.h"

namespace whimbrel {
namespace {

// From this size on every class is a multiple of the page size (1 MiB / 8 = 128 KiB).
constexpr size_t kMapBytes = size_t{1} << 20;

// Classes are `alignment` apart up to 2^9 bytes, then an eighth of a power of two apart.
constexpr size_t kSteps = 8;
constexpr size_t kFineBytes = kSteps * MemoryPool::kAlignmentBytes;
constexpr size_t kFineExponent = 9;
static_assert(kFineBytes == size_t{1} << kFineExponent);

class HostSystemMemory final : public SystemMemory {
 public:
  void* Take(size_t bytes) noexcept override {
    if (bytes < kMapBytes) return std::aligned_alloc(MemoryPool::kAlignmentBytes, bytes);
    void* const mapped =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mapped == MAP_FAILED ? nullptr : mapped;
  }

  void GiveBack(void* pointer, size_t bytes) noexcept override {
    if (bytes < kMapBytes) {
      std::free(pointer);
    } else {
      munmap(pointer, bytes);
    }
  }
};

}  // namespace

SystemMemory& HostMemory() {
  // Never destroyed: a pool that lives as long as the process may give blocks back after all else.
  alignas(HostSystemMemory) static std::array<std::byte, sizeof(HostSystemMemory)> storage;
  static HostSystemMemory* const memory = ::new (storage.data()) HostSystemMemory;
  return *memory;
}

MemoryPool::MemoryPool(std::string name, SystemMemory& system)
    : name_(std::move(name)), system_(system) {}

MemoryPool::~MemoryPool() {
  Trim();
}

MemoryPool::SizeClass MemoryPool::ClassOf(size_t bytes) {
  bytes = std::max<size_t>(bytes, 1);
  if (bytes <= kFineBytes) {
    const size_t index = (bytes - 1) / kAlignmentBytes;
    return {index, (index + 1) * kAlignmentBytes};
  }
  const auto exponent = static_cast<size_t>(std::bit_width(bytes - 1) - 1);
  const size_t base = size_t{1} << exponent;  // base < bytes <= 2 * base
  const size_t step_bytes = base / kSteps;
  const size_t step = (bytes - 1 - base) / step_bytes;
  return {kSteps + (exponent - kFineExponent) * kSteps + step, base + (step + 1) * step_bytes};
}

size_t MemoryPool::BlockBytes(size_t bytes) {
  return ClassOf(bytes).bytes;
}

void* MemoryPool::Allocate(size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > kMaxBlockBytes) ThrowOutOfMemory(bytes, "no block is that large");
  const SizeClass wanted = ClassOf(bytes);
  if (limit_bytes_ != 0 && stats_.current_bytes + wanted.bytes > limit_bytes_) {
    ThrowOutOfMemory(bytes, "the limit is reached");
  }
  Block* block = cached_[wanted.index];
  if (block != nullptr) {
    cached_[wanted.index] = block->next_cached;
    block->next_cached = nullptr;
    cached_bytes_ -= block->bytes;
  } else {
    block = &TakeFromSystem(wanted, bytes);
  }
  block->handed_out = true;
  ++stats_.allocations;
  stats_.current_bytes += block->bytes;
  stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.current_bytes);
  return block->pointer;
}

MemoryPool::Block& MemoryPool::TakeFromSystem(const SizeClass& wanted, size_t asked) {
  // current + wanted <= limit was checked, so that giving up cached blocks always makes it fit.
  if (limit_bytes_ != 0 && stats_.reserved_bytes + wanted.bytes > limit_bytes_) {
    ReleaseCached(limit_bytes_ - wanted.bytes);
  }
  void* pointer = system_.Take(wanted.bytes);
  if (pointer == nullptr && cached_bytes_ > 0) {
    ReleaseCached(0);
    pointer = system_.Take(wanted.bytes);
  }
  if (pointer == nullptr) ThrowOutOfMemory(asked, "the system gives no more");
  Block* block = nullptr;
  try {
    block = &blocks_
                 .try_emplace(
                     pointer,
                     Block{.pointer = pointer, .bytes = wanted.bytes, .size_class = wanted.index})
                 .first->second;
  } catch (const std::bad_alloc&) {
    system_.GiveBack(pointer, wanted.bytes);
    ThrowOutOfMemory(asked, "the system gives no more");
  }
  ++stats_.system_allocations;
  stats_.reserved_bytes += wanted.bytes;
  return *block;
}

void MemoryPool::Free(void* pointer) noexcept {
  if (pointer == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(pointer);
  WHIMBREL_CHECK(found != blocks_.end() && found->second.handed_out);
  Block& block = found->second;
  block.handed_out = false;
  block.next_cached = cached_[block.size_class];
  cached_[block.size_class] = &block;
  cached_bytes_ += block.bytes;
  stats_.current_bytes -= block.bytes;
}

void MemoryPool::Trim() noexcept {
  const std::lock_guard lock(mutex_);
  ReleaseCached(0);
}

void MemoryPool::SetLimit(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_bytes_ = bytes;
  if (bytes != 0) ReleaseCached(bytes);
}

void MemoryPool::ReleaseCached(uint64_t reserved_target) noexcept {
  for (size_t index = kClasses; index-- > 0 && cached_bytes_ > 0;) {
    while (cached_[index] != nullptr && stats_.reserved_bytes > reserved_target) {
      const Block block = *cached_[index];
      cached_[index] = block.next_cached;
      cached_bytes_ -= block.bytes;
      stats_.reserved_bytes -= block.bytes;
      blocks_.erase(block.pointer);
      system_.GiveBack(block.pointer, block.bytes);
    }
  }
}

MemoryStats MemoryPool::stats() const {
  const std::lock_guard lock(mutex_);
  MemoryStats result = stats_;
  if (cached_bytes_ > 0) {
    const auto largest =
        std::find_if(cached_.rbegin(), cached_.rend(), [](const Block* head) { return head; });
    result.fragmentation_ratio =
        1 - static_cast<double>((*largest)->bytes) / static_cast<double>(cached_bytes_);
  }
  return result;
}

void MemoryPool::ThrowOutOfMemory(size_t asked, const char* reason) const {
  throw Error(
      Code::kOutOfMemory,
      fmt::format("{} memory: {} bytes asked, {} handed out, {} reserved, limit {}: {}", name_,
                  asked, stats_.current_bytes, stats_.reserved_bytes,
                  limit_bytes_ == 0 ? "none" : fmt::format("{} bytes", limit_bytes_), reason),
      "lower the batch or the cache sizes, or raise the memory limit");
}

}  // namespace whimbrel
