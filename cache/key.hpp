// The identity of a compiled kernel: readable text, then its hash.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace logpjit::cache {

/// Fields ("arch", "compiler", "config", "options", "source", "spec", ...)
/// sorted by name, each escaped so that two keys never share a text. Holds no
/// path, time, user, host name or driver version.
class Key {
 public:
  /// Adds a field; a name may be given once (Error{kInternal} otherwise).
  void add(std::string_view name, std::string_view value);

  /// "name: value\n" lines in name order; line breaks and backslashes in
  /// values are escaped.
  const std::string& text() const { return text_; }
  /// XXH3-128 of `text()`: 32 hex digits, also the entry's file name.
  const std::string& hash() const { return hash_; }
  /// The text without the compiler's identity: what sealed, read-only layers
  /// are matched by.
  std::string text_without_compiler() const;
  const std::vector<std::pair<std::string, std::string>>& fields() const {
    return fields_;
  }

  /// Name of the field that `text_without_compiler` leaves out.
  static constexpr std::string_view kCompilerField = "compiler";

  bool operator==(const Key& other) const { return text_ == other.text_; }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
  std::string text_;
  std::string hash_;
};

}  // namespace logpjit::cache
