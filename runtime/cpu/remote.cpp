// Shared memory of the other blocks of a cluster.
#include <fmt/format.h>

#include <cstring>

#include "runtime/cpu/collectives.hpp"
#include "runtime/cpu/group.hpp"

namespace logpjit::runtime {

unsigned char* at_rank(Fiber& self, void* local, std::size_t bytes, int rank,
                       const char* operation) {
  const std::span<Block> blocks = self.group->blocks();
  const auto at = reinterpret_cast<std::uintptr_t>(local);
  const auto base = reinterpret_cast<std::uintptr_t>(self.block->shared_memory);
  if (at < base || at - base + bytes > self.block->shared_bytes ||
      at % bytes != 0) {
    self.group->fail(self, fmt::format("{}: the address is no {} aligned bytes "
                                       "of the block's shared memory",
                                       operation, bytes));
  }
  if (rank < 0 || rank >= static_cast<int>(blocks.size())) {
    self.group->fail(self, fmt::format("{}: rank {} in a cluster of {} blocks",
                                       operation, rank, blocks.size()));
  }
  if (blocks[rank].returned == blocks[rank].threads) {
    self.group->fail(
        self, fmt::format("{}: block {} (rank {}) has ended, and its shared "
                          "memory with it; sync_cluster before the end",
                          operation, blocks[rank].index, rank));
  }
  return blocks[rank].shared_memory + (at - base);
}

void store_at(Fiber& self, float* to, int rank, float value) {
  std::memcpy(at_rank(self, to, sizeof value, rank, "store_at"), &value,
              sizeof value);
}

}  // namespace logpjit::runtime
