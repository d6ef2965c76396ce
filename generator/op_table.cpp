// Which template serves which specification: a row per kernel family.
#include <fmt/format.h>

#include <array>
#include <functional>

#include "generator/generate.hpp"
#include "logpjit/error.hpp"

namespace logpjit::generator {
namespace {

struct KernelRow {
  bool kl;
  Pass pass;
  bool split;
  std::string_view kernel;
};

constexpr std::array kKernels{
    KernelRow{false, Pass::kForward, false, "row_statistics"},
    KernelRow{false, Pass::kForward, true, "row_statistics_split"},
    KernelRow{false, Pass::kBackward, false, "row_gradient"},
    KernelRow{false, Pass::kWithGrad, false, "row_fused"},
    KernelRow{true, Pass::kForward, false, "kl_statistics"},
    KernelRow{true, Pass::kBackward, false, "kl_gradient"},
    KernelRow{false, Pass::kShardStatistics, false, "shard_statistics"},
    KernelRow{false, Pass::kShardMerge, false, "shard_merge"},
    KernelRow{false, Pass::kShardGradient, false, "shard_gradient"},
    KernelRow{true, Pass::kShardStatistics, false, "shard_kl_statistics"},
    KernelRow{true, Pass::kShardMerge, false, "shard_kl_merge"},
};

using Value = std::string (*)(const KernelSpec&);
struct ValueRow {
  std::string_view key;
  Value value;
};

std::string number(std::int64_t value) { return fmt::format("{}", value); }

constexpr std::array kValues{
    ValueRow{"logit",
             [](const KernelSpec& s) { return std::string(name(s.logits)); }},
    ValueRow{"logit_a",
             [](const KernelSpec& s) { return std::string(name(s.logits)); }},
    ValueRow{"logit_b",
             [](const KernelSpec& s) { return std::string(name(s.other)); }},
    ValueRow{"grad_a", [](const KernelSpec& s) { return number(s.grad_a); }},
    ValueRow{"grad_b", [](const KernelSpec& s) { return number(s.grad_b); }},
    ValueRow{"id",
             [](const KernelSpec& s) { return std::string(name(s.ids)); }},
    ValueRow{"vocab", [](const KernelSpec& s) { return number(s.vocab); }},
    ValueRow{"global",
             [](const KernelSpec& s) { return number(s.global_vocab); }},
    ValueRow{"segments",
             [](const KernelSpec& s) { return number(s.segments); }},
    ValueRow{"terms",
             [](const KernelSpec& s) {
               return number(static_cast<std::int64_t>(s.terms));
             }},
    ValueRow{"many_ids",
             [](const KernelSpec& s) { return number(s.many_ids); }},
    ValueRow{"aligned", [](const KernelSpec& s) { return number(s.aligned); }},
    ValueRow{"rows",
             [](const KernelSpec& s) {
               return number(static_cast<std::int64_t>(s.rows));
             }},
    ValueRow{"temperature",
             [](const KernelSpec& s) { return number(s.temperature); }},
    ValueRow{"softcap", [](const KernelSpec& s) { return number(s.softcap); }},
    ValueRow{"accumulate",
             [](const KernelSpec& s) {
               return number(s.store == GradStore::kAccumulate);
             }},
};

}  // namespace

std::string kernel_name(const KernelSpec& spec, const LaunchConfig& config) {
  const bool kl = has(spec.terms, Terms::kKl);
  const bool split = config.find("split").value_or(1) > 1;
  for (const KernelRow& row : kKernels) {
    if (row.kl == kl && row.pass == spec.pass && row.split == split) {
      return std::string(row.kernel);
    }
  }
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format("no kernel serves {} with '{}'", spec.op(), config.text()));
}

std::string spec_value(const KernelSpec& spec, std::string_view key) {
  for (const ValueRow& row : kValues) {
    if (row.key == key) return row.value(spec);
  }
  throw Error(ErrorCode::kInternal,
              fmt::format("no specification field is called '{}'", key));
}

}  // namespace logpjit::generator
