// One CUDA thread and what it shares with its warp and its block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/cpu/context.hpp"
#include "runtime/cpu/fiber_queue.hpp"
#include "runtime/cpu/host_abi.hpp"

namespace logpjit::runtime {

class Group;
struct Block;
struct Warp;

inline constexpr int kWarpLanes = 32;
inline constexpr int kNamedBarriers = 16;

/// What a thread can wait at.
enum class WaitKind : std::uint8_t {
  kNothing,
  kSyncThreads,
  kNamed,
  kCluster,
  kSyncWarp,
  kShuffleXor,
  kShuffle,
  kBallot,
  kMbarrier,
};

/// Where a thread waits; fields beyond `kind` where the kind has them.
struct Wait {
  WaitKind kind = WaitKind::kNothing;
  int id = 0;                 ///< kNamed
  int threads = 0;            ///< kNamed
  std::ptrdiff_t offset = 0;  ///< kMbarrier: in shared memory
  bool parity = false;        ///< kMbarrier
  bool operator==(const Wait&) const = default;
};

struct Fiber {
  Fiber(Group& owner, Stack stack, void (*main)(void*))
      : group(&owner), context(stack, main, this) {}

  Fiber* next = nullptr;
  Group* group;
  Context context;
  device::HostThread self{};
  Block* block = nullptr;
  Warp* warp = nullptr;
  Wait wait;
  bool returned = false;  ///< the kernel is over for this thread
};

using FiberQueue = IntrusiveQueue<Fiber>;

/// A barrier that opens when `expected` threads have come.
struct Barrier {
  int arrived = 0;
  int expected = 0;
  FiberQueue waiting{};
};

/// Where the lanes of a warp meet.
struct Warp {
  int lanes = 0;  ///< fewer than 32 in the last warp of an odd block
  int arrived = 0;
  std::optional<int> returned;  ///< a thread of it that is over
  WaitKind operation = WaitKind::kNothing;
  FiberQueue waiting;
  std::array<std::uint32_t, kWarpLanes> value{};
  std::array<std::uint32_t, kWarpLanes> result{};
  std::array<int, kWarpLanes> argument{};
};

struct Block {
  std::int64_t index = 0;
  int threads = 0;
  int returned = 0;
  unsigned char* shared_memory = nullptr;
  std::size_t shared_bytes = 0;
  Barrier all;
  std::array<Barrier, kNamedBarriers> named;
  FiberQueue at_mbarriers;
};

}  // namespace logpjit::runtime
