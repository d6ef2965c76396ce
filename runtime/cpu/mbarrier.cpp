// Bit 0 parity, 1..16 pending, 17..32 expected, 33..54 bytes, 55..63 the mark.
#include "runtime/cpu/mbarrier.hpp"

namespace logpjit::runtime {
namespace {

// Neither zeros nor the poison of fresh shared memory.
constexpr std::uint64_t kMark = 0x0d2;
constexpr std::int32_t kBytesBias = 1 << 21;

constexpr std::uint64_t field(std::uint64_t word, int low, int bits) {
  return (word >> low) & ((std::uint64_t{1} << bits) - 1);
}

}  // namespace

std::uint64_t pack(const Mbarrier& barrier) {
  const auto biased =
      std::uint64_t{static_cast<std::uint32_t>(barrier.bytes + kBytesBias)};
  return std::uint64_t{barrier.parity} | std::uint64_t{barrier.pending} << 1 |
         std::uint64_t{barrier.expected} << 17 | biased << 33 | kMark << 55;
}

std::optional<Mbarrier> unpack(std::uint64_t word) {
  if (field(word, 55, 9) != kMark) return std::nullopt;
  return Mbarrier{
      field(word, 0, 1) != 0,
      static_cast<std::uint32_t>(field(word, 1, 16)),
      static_cast<std::uint32_t>(field(word, 17, 16)),
      static_cast<std::int32_t>(field(word, 33, 22)) - kBytesBias,
  };
}

MbarrierChange change(std::uint64_t& word, std::uint32_t arrivals,
                      std::int32_t bytes) {
  std::optional<Mbarrier> barrier = unpack(word);
  if (!barrier) return MbarrierChange::kNotInitialized;
  if (barrier->pending < arrivals) return MbarrierChange::kTooManyArrivals;
  const std::int64_t sum = std::int64_t{barrier->bytes} + bytes;
  if (sum > kMaxMbarrierBytes || sum < -kMaxMbarrierBytes) {
    return MbarrierChange::kTooManyBytes;
  }
  barrier->bytes = static_cast<std::int32_t>(sum);
  barrier->pending -= arrivals;
  const bool completed = barrier->pending == 0 && barrier->bytes == 0;
  if (completed) {
    barrier->parity = !barrier->parity;
    barrier->pending = barrier->expected;
  }
  word = pack(*barrier);
  return completed ? MbarrierChange::kCompleted : MbarrierChange::kPending;
}

}  // namespace logpjit::runtime
