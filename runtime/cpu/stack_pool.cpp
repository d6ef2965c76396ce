// Maps fiber stacks with guard pages between them.
#include "runtime/cpu/stack_pool.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "logpjit/error.hpp"
#include "runtime/cpu/sanitizer.hpp"

namespace logpjit::runtime {
namespace {

#if defined(LOGPJIT_ADDRESS_SANITIZER) || defined(LOGPJIT_THREAD_SANITIZER)
constexpr std::size_t kStackBytes = 256 << 10;  // fatter frames
#else
constexpr std::size_t kStackBytes = 64 << 10;
#endif
constexpr std::size_t kGuardBytes = 4096;
constexpr std::size_t kStride = kStackBytes + kGuardBytes;
constexpr int kStacksPerSlab = 32;
constexpr std::size_t kSlabBytes = kStride * kStacksPerSlab;

// A guard costs two of the process's mappings, of which Linux allows 65530:
// the rest belongs to the program around us.
constexpr int kMaxGuards = 8192;
std::atomic<int> guards_left{kMaxGuards};

// The same depth of every stack would fall into the same cache sets; starting
// each a few lines lower spreads them.
constexpr std::size_t kColours = 16;
constexpr std::size_t kColourBytes = 256;

}  // namespace

StackPool::~StackPool() {
  for (std::byte* slab : slabs_) munmap(slab, kSlabBytes);
  guards_left += static_cast<int>(slabs_.size()) * kStacksPerSlab;
}

void StackPool::map_slab() {
  slabs_.reserve(slabs_.size() + 1);
  void* slab =
      mmap(nullptr, kSlabBytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (slab == MAP_FAILED) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("cannot map {} bytes for the stacks of the CPU "
                            "device: {}; use fewer CPU threads",
                            kSlabBytes, std::strerror(errno)));
  }
  slabs_.push_back(static_cast<std::byte*>(slab));
  taken_of_last_ = 0;
  if (guards_left.fetch_sub(kStacksPerSlab) < kStacksPerSlab) return;
  for (int stack = 0; stack < kStacksPerSlab; ++stack) {
    mprotect(slabs_.back() + kStride * stack, kGuardBytes, PROT_NONE);
  }
}

Stack StackPool::take() {
  if (slabs_.empty() || taken_of_last_ == kStacksPerSlab) map_slab();
  const int index = taken_of_last_++;
  std::byte* low = slabs_.back() + kStride * index + kGuardBytes;
  const std::size_t lower = (index % kColours) * kColourBytes;
  return {low + kStackBytes - lower, kStackBytes - lower};
}

}  // namespace logpjit::runtime
