// The manifest's vocabulary: domains, parameter keys, look-up.
#include "generator/manifest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "generator/canonical_integer.hpp"

namespace logpjit::generator {
namespace {

// ASCII only, whatever the locale.
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
char to_lower(char c) {
  return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}

// A word starts at an upper-case letter after a lower-case one, and at the last
// capital of a run ("TMADepth" is "tma_depth").
bool starts_word(std::string_view name, std::size_t at) {
  if (at == 0 || !is_upper(name[at]) || name[at - 1] == '_') return false;
  const bool next_is_lower =
      at + 1 < name.size() && name[at + 1] >= 'a' && name[at + 1] <= 'z';
  return !is_upper(name[at - 1]) || next_is_lower;
}

}  // namespace

bool Domain::contains(std::string_view value) const {
  if (!values.empty()) return std::ranges::find(values, value) != values.end();
  const auto number = parse_canonical_integer(value);
  return number && *number >= low && *number <= high;
}

std::string Domain::text() const {
  if (values.empty()) return fmt::format("{}..{}", low, high);
  return fmt::format("{}", fmt::join(values, " "));
}

std::string TemplateParameter::key() const {
  std::string_view word = name;
  if (word.size() > 1 && word[0] == 'k' && is_upper(word[1])) {
    word.remove_prefix(1);
  }
  std::string key;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (starts_word(word, i)) key += '_';
    key += to_lower(word[i]);
  }
  return key;
}

const KernelManifest* Manifest::find(std::string_view kernel) const {
  const TemplateManifest* owner = template_of(kernel);
  if (owner == nullptr) return nullptr;
  return &*std::ranges::find(owner->kernels, kernel, &KernelManifest::name);
}

const TemplateManifest* Manifest::template_of(std::string_view kernel) const {
  for (const TemplateManifest& candidate : templates) {
    const auto found =
        std::ranges::find(candidate.kernels, kernel, &KernelManifest::name);
    if (found != candidate.kernels.end()) return &candidate;
  }
  return nullptr;
}

}  // namespace logpjit::generator
