// The arithmetic of a shared-memory barrier: phases, arrivals and bytes packed
// into one word, as a kernel sees them in its shared memory.
#pragma once

#include <cstdint>
#include <optional>

namespace logpjit::runtime {

/// A phase completes when every arrival and every announced byte is in; then
/// the parity flips and the next phase starts with the full count.
struct Mbarrier {
  bool parity = false;         ///< of the phase under way
  std::uint32_t pending = 0;   ///< arrivals still missing
  std::uint32_t expected = 0;  ///< arrivals per phase
  std::int32_t bytes = 0;      ///< announced minus arrived
};

inline constexpr std::uint32_t kMaxMbarrierArrivals = (1u << 16) - 1;
inline constexpr std::int32_t kMaxMbarrierBytes = (1 << 20) - 1;

std::uint64_t pack(const Mbarrier& barrier);
/// Nothing if the word is no barrier: never initialised, or overwritten.
std::optional<Mbarrier> unpack(std::uint64_t word);

enum class MbarrierChange {
  kPending,          ///< the phase is still under way
  kCompleted,        ///< the phase completed with this change
  kNotInitialized,   ///< the word is no barrier; unchanged
  kTooManyArrivals,  ///< more arrivals than the phase expects; unchanged
  kTooManyBytes,     ///< beyond what hardware counts; unchanged
};

/// Counts `arrivals` (0 or 1) after adding `bytes`: positive announces,
/// negative delivers.
MbarrierChange change(std::uint64_t& word, std::uint32_t arrivals,
                      std::int32_t bytes);

}  // namespace logpjit::runtime
