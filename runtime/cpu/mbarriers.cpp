// Mbarriers and the bulk copies that arrive at them; a copy is complete when it
// is issued, which the hardware's rules allow.
#include <fmt/format.h>

#include <cstring>

#include "runtime/cpu/collectives.hpp"
#include "runtime/cpu/group.hpp"
#include "runtime/cpu/mbarrier.hpp"

namespace logpjit::runtime {
namespace {

constexpr std::uint32_t kBulkAlignment = 16;

std::ptrdiff_t offset_in(const Block& block, const void* address) {
  return static_cast<const unsigned char*>(address) - block.shared_memory;
}

/// Lets those go who wait for the phase that has just completed.
void release_waiting(Fiber& self, Block& block, std::ptrdiff_t offset,
                     bool completed_parity) {
  FiberQueue still;
  FiberQueue released;
  while (Fiber* fiber = block.at_mbarriers.pop_front()) {
    const bool done =
        fiber->wait.offset == offset && fiber->wait.parity == completed_parity;
    (done ? released : still).push_back(*fiber);
  }
  block.at_mbarriers.splice_back(still);
  self.group->release(released);
}

const char* complaint(MbarrierChange change) {
  switch (change) {
    case MbarrierChange::kNotInitialized:
      return "was never initialised, or is overwritten";
    case MbarrierChange::kTooManyArrivals:
      return "has more arrivals in one phase than it was initialised for";
    case MbarrierChange::kTooManyBytes:
      return "counts more bytes than hardware can";
    default:
      return nullptr;
  }
}

/// `change` on the barrier of `block`, which may be a remote one.
void apply(Fiber& self, Block& block, device::u64* state,
           std::uint32_t arrivals, std::int32_t bytes, const char* operation) {
  std::uint64_t word = *state;
  const MbarrierChange result = change(word, arrivals, bytes);
  if (const char* wrong = complaint(result)) {
    self.group->fail(self,
                     fmt::format("{}: the mbarrier at byte {} of shared "
                                 "memory {}",
                                 operation, offset_in(block, state), wrong));
  }
  *state = word;
  if (result != MbarrierChange::kCompleted) return;
  const bool completed_parity = !unpack(word)->parity;
  release_waiting(self, block, offset_in(block, state), completed_parity);
}

/// `state` itself, if it lies in the thread's own shared memory.
device::u64* own(Fiber& self, device::u64* state, const char* operation) {
  return reinterpret_cast<device::u64*>(
      at_rank(self, state, sizeof *state, self.self.cluster_rank, operation));
}

void check_bulk(Fiber& self, const void* to, const void* from,
                std::uint32_t bytes) {
  const auto misaligned = [](const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer) % kBulkAlignment != 0;
  };
  if (misaligned(to) || misaligned(from) || bytes % kBulkAlignment != 0) {
    self.group->fail(self, fmt::format("bulk_load of {} bytes: size and both "
                                       "addresses must be multiples of {}",
                                       bytes, kBulkAlignment));
  }
  const std::ptrdiff_t offset = offset_in(*self.block, to);
  if (offset < 0 || offset + std::size_t{bytes} > self.block->shared_bytes) {
    self.group->fail(self,
                     fmt::format("bulk_load of {} bytes to byte {} of shared "
                                 "memory, which has {}",
                                 bytes, offset, self.block->shared_bytes));
  }
}

}  // namespace

void mbarrier_init(Fiber& self, device::u64* state, int arrivals) {
  own(self, state, "mbarrier_init");
  if (arrivals < 1 || arrivals > static_cast<int>(kMaxMbarrierArrivals)) {
    self.group->fail(self, fmt::format("mbarrier_init with {} arrivals: 1 to "
                                       "{} are possible",
                                       arrivals, kMaxMbarrierArrivals));
  }
  const auto count = static_cast<std::uint32_t>(arrivals);
  *state = pack({.pending = count, .expected = count});
}

void mbarrier_arrive(Fiber& self, device::u64* state) {
  apply(self, *self.block, own(self, state, "mbarrier_arrive"), 1, 0,
        "mbarrier_arrive");
}

void mbarrier_expect(Fiber& self, device::u64* state, std::uint32_t bytes) {
  if (bytes > static_cast<std::uint32_t>(kMaxMbarrierBytes)) {
    self.group->fail(self, fmt::format("mbarrier_expect of {} bytes: at most "
                                       "{} are possible",
                                       bytes, kMaxMbarrierBytes));
  }
  apply(self, *self.block, own(self, state, "mbarrier_expect"), 1,
        static_cast<std::int32_t>(bytes), "mbarrier_expect");
}

void send_at(Fiber& self, float* to, int rank, float value,
             device::u64* state) {
  store_at(self, to, rank, value);
  auto* remote = reinterpret_cast<device::u64*>(
      at_rank(self, state, sizeof *state, rank, "send_at"));
  apply(self, self.group->blocks()[rank], remote, 0,
        -static_cast<std::int32_t>(sizeof value), "send_at");
}

void mbarrier_wait(Fiber& self, device::u64* state, std::uint32_t parity) {
  own(self, state, "mbarrier_wait");
  const std::optional<Mbarrier> barrier = unpack(*state);
  if (!barrier || parity > 1) {
    self.group->fail(
        self,
        fmt::format("mbarrier_wait for parity {} at byte {} of shared "
                    "memory: {}",
                    parity, offset_in(*self.block, state),
                    barrier ? "a parity is 0 or 1"
                            : complaint(MbarrierChange::kNotInitialized)));
  }
  if (barrier->parity != (parity == 1)) return;
  self.block->at_mbarriers.push_back(self);
  self.group->wait(self, {.kind = WaitKind::kMbarrier,
                          .offset = offset_in(*self.block, state),
                          .parity = parity == 1});
}

void bulk_load(Fiber& self, void* to, const void* from, std::uint32_t bytes,
               device::u64* state) {
  check_bulk(self, to, from, bytes);
  std::memcpy(to, from, bytes);
  apply(self, *self.block, own(self, state, "bulk_load"), 0,
        -static_cast<std::int32_t>(bytes), "bulk_load");
}

}  // namespace logpjit::runtime
