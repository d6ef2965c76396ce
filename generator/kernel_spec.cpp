// Canonical text of a KernelSpec and the grammar of operation names.
#include "logpjit/kernel_spec.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace logpjit {
namespace {

constexpr std::array<std::pair<std::string_view, Terms>, 6> kTermNames{{
    {"logp", Terms::kLogp},
    {"entropy", Terms::kEntropy},
    {"lse", Terms::kLse},
    {"squares", Terms::kSquares},
    {"argmax", Terms::kArgmax},
    {"kl", Terms::kKl},
}};

constexpr std::array<std::pair<std::string_view, Pass>, 3> kSuffixes{{
    {"_with_grad", Pass::kWithGrad},
    {"_backward", Pass::kBackward},
    {"", Pass::kForward},
}};

/// Parts of an operation: kernels with names, no operations to ask for.
constexpr std::array<std::pair<std::string_view, Pass>, 3> kParts{{
    {"_shard_statistics", Pass::kShardStatistics},
    {"_shard_merge", Pass::kShardMerge},
    {"_shard_gradient", Pass::kShardGradient},
}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kAliases{
    {{"logp_entropy", "logp+entropy"},
     {"kl_forward", "kl"},
     {"kl_reverse", "kl"}}};

std::string_view name(RowMap rows) {
  switch (rows) {
    case RowMap::kStrided:
      return "strided";
    case RowMap::kStrided2:
      return "strided2";
    case RowMap::kIndexed:
      return "indexed";
  }
  return "";
}

std::optional<Terms> parse_terms(std::string_view text) {
  Terms terms = Terms::kNone;
  while (true) {
    const std::size_t plus = text.find('+');
    const std::string_view part = text.substr(0, plus);
    Terms found = Terms::kNone;
    for (const auto& [term_name, term] : kTermNames) {
      if (term_name == part) found = term;
    }
    if (found == Terms::kNone || has(terms, found)) return std::nullopt;
    terms = terms | found;
    if (plus == std::string_view::npos) break;
    text.remove_prefix(plus + 1);
  }
  if (has(terms, Terms::kKl) && terms != Terms::kKl) return std::nullopt;
  return terms;
}

}  // namespace

std::string KernelSpec::op() const {
  std::string text;
  for (const auto& [term_name, term] : kTermNames) {
    if (!has(terms, term)) continue;
    if (!text.empty()) text += '+';
    text += term_name;
  }
  for (const auto& [suffix, suffix_pass] : kSuffixes) {
    if (pass == suffix_pass) text += suffix;
  }
  for (const auto& [suffix, part] : kParts) {
    if (pass == part) text += suffix;
  }
  return text;
}

std::string KernelSpec::text() const {
  std::string text = fmt::format("family={} op={} logits={}", kFamily, op(),
                                 logpjit::name(logits));
  const auto add = [&text]<typename T>(std::string_view key, const T& value) {
    text += fmt::format(" {}={}", key, value);
  };
  if (has(terms, Terms::kKl)) add("other", logpjit::name(other));
  if (has(terms, Terms::kLogp)) {
    add("ids", logpjit::name(ids));
    add("many_ids", static_cast<int>(many_ids));
  }
  add("vocab", vocab);
  add("rows", name(rows));
  add("aligned", static_cast<int>(aligned));
  add("temperature", static_cast<int>(temperature));
  add("softcap", static_cast<int>(softcap));
  if (is_shard(pass)) add("global", global_vocab);
  if (is_shard(pass)) add("segments", static_cast<int>(segments));
  if (pass != Pass::kBackward && pass != Pass::kWithGrad &&
      pass != Pass::kShardGradient) {
    return text;
  }
  add("store", store == GradStore::kWrite ? "write" : "accumulate");
  if (has(terms, Terms::kKl)) {
    add("grad_a", static_cast<int>(grad_a));
    add("grad_b", static_cast<int>(grad_b));
  }
  return text;
}

std::optional<KernelSpec> parse_op(std::string_view op_name) {
  for (const auto& [suffix, pass] : kSuffixes) {
    if (!op_name.ends_with(suffix)) continue;
    std::string_view stem = op_name.substr(0, op_name.size() - suffix.size());
    for (const auto& [alias, canonical] : kAliases) {
      if (stem == alias) stem = canonical;
    }
    const std::optional<Terms> terms = parse_terms(stem);
    if (!terms) continue;
    KernelSpec spec;
    spec.terms = *terms;
    spec.pass = pass;
    return spec;
  }
  return std::nullopt;
}

}  // namespace logpjit
