// What a kernel computes: everything that shapes its code, nothing of how it
// is launched.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "logpjit/api.hpp"
#include "logpjit/dtype.hpp"

namespace logpjit {

/// The per-row results of one sweep over the logits, as a bit set. Any subset
/// of the first five may be asked for at once; adding one never changes
/// another's bits. `kKl` stands alone (it reads two inputs).
enum class Terms : std::uint32_t {
  kNone = 0,
  kLogp = 1,     ///< log-probability of the given ids
  kEntropy = 2,  ///< H = log s - W/s
  kLse = 4,      ///< log-sum-exp, max + log s
  kSquares = 8,  ///< C = sum of p^2
  kArgmax = 16,  ///< column of the largest logit, lowest column on ties
  kKl = 32,      ///< KL(A || B) of two logits tensors
};

constexpr Terms operator|(Terms a, Terms b) {
  return static_cast<Terms>(static_cast<std::uint32_t>(a) |
                            static_cast<std::uint32_t>(b));
}
constexpr Terms operator&(Terms a, Terms b) {
  return static_cast<Terms>(static_cast<std::uint32_t>(a) &
                            static_cast<std::uint32_t>(b));
}
constexpr bool has(Terms set, Terms term) { return (set & term) == term; }

/// Which sweep: values and statistics; the gradient from saved statistics; or
/// both in one launch (the upstream gradient is then known beforehand). The
/// last three are the parts of a vocab-parallel operation: one rank's partial
/// results, the values from those of all ranks, one rank's gradient.
enum class Pass {
  kForward,
  kBackward,
  kWithGrad,
  kShardStatistics,
  kShardMerge,
  kShardGradient,
};

constexpr bool is_shard(Pass pass) { return pass >= Pass::kShardStatistics; }

/// How a row number becomes an element offset.
enum class RowMap {
  kStrided,   ///< row * stride (contiguous rows included)
  kStrided2,  ///< [B, S, V] views: (row / S) * outer + (row % S) * inner
  kIndexed,   ///< a list of row numbers, then kStrided2
};

/// What happens to the gradient buffer's old content.
enum class GradStore { kWrite, kAccumulate };

/// One kernel, up to launch configuration and GPU. A value: copy and compare
/// freely. `text()` is its canonical form and serves cache key, report and log.
struct LOGPJIT_API KernelSpec {
  Terms terms = Terms::kLogp;
  Pass pass = Pass::kForward;
  DType logits = DType::kBf16;  ///< A's dtype for kKl
  DType other = DType::kBf16;   ///< B's dtype, kKl only
  DType ids = DType::kInt64;
  std::int64_t vocab = 0;  ///< columns that count, >= 1
  bool many_ids = false;   ///< more than one id per row
  RowMap rows = RowMap::kStrided;
  bool aligned = true;       ///< every row starts at a multiple of 16 bytes
  bool temperature = false;  ///< scalar or per row; absent costs nothing
  bool softcap = false;
  GradStore store = GradStore::kWrite;
  bool grad_a = true;  ///< kKl gradients: of A, of B, or of both
  bool grad_b = false;
  /// Shard passes: columns of the whole vocabulary, of which `vocab` are the
  /// rank's; and whether lane states of segments are kept apart.
  std::int64_t global_vocab = 0;
  bool segments = false;

  /// The reduction tree's version. Results of one family have equal bits on
  /// one GPU whatever the launch configuration; a new tree is a new family.
  static constexpr int kFamily = 1;

  friend auto operator<=>(const KernelSpec&, const KernelSpec&) = default;

  /// "family=1 op=logp logits=bf16 ids=int64 vocab=151936 ...": fields in
  /// fixed order, those that do not matter for the op left out.
  std::string text() const;
  /// "logp", "logp+entropy_backward", "kl", "logp_with_grad", ...
  std::string op() const;
};

/// Sets `terms` and `pass` from an operation name as `KernelSpec::op()` prints
/// it; "logp_entropy" is accepted for "logp+entropy", "kl_forward" and
/// "kl_reverse" for "kl". Nothing when the name is unknown.
LOGPJIT_API std::optional<KernelSpec> parse_op(std::string_view name);

}  // namespace logpjit
