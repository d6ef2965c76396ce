// Building and recognising the names of cache files.
#include "cache/entry_name.hpp"

#include <algorithm>

#include "cache/digest.hpp"

namespace logpjit::cache {
namespace {

constexpr std::size_t kHashDigits = 32;
constexpr std::size_t kSealedDigits = 16;

bool all_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

}  // namespace

std::string entry_name(const Key& key) {
  return key.hash() + sealed_ending(key);
}

std::string sealed_ending(const Key& key) {
  std::string ending = ".";
  ending.append(hex(digest(key.text_without_compiler())), 0, kSealedDigits);
  ending += kEntrySuffix;
  return ending;
}

bool is_entry_name(std::string_view name) {
  return name.size() == kHashDigits + 1 + kSealedDigits + kEntrySuffix.size() &&
         name.ends_with(kEntrySuffix) && name[kHashDigits] == '.' &&
         all_hex(name.substr(0, kHashDigits)) &&
         all_hex(name.substr(kHashDigits + 1, kSealedDigits));
}

bool is_bad_name(std::string_view name) {
  return name.ends_with(kBadSuffix) &&
         is_entry_name(name.substr(0, name.size() - kBadSuffix.size()));
}

bool is_temporary_name(std::string_view name) {
  return name.starts_with(kTemporaryPrefix);
}

}  // namespace logpjit::cache
