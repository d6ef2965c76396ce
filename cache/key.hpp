// The identity of a compiled kernel: readable text, then its hash.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace logpjit::cache {

/// Fields ("arch", "compiler", "config", "options", "source", "spec", ...)
/// sorted by name, each escaped so that two keys never share a text. Holds no
/// path, time, user, host name or driver version. Large values (a source text)
/// are better given as their `hex(digest(...))`: the text is part of each
/// entry.
class Key {
 public:
  Key();

  /// Adds a field; a name may be given once and consists of a-z, 0-9 and '_'
  /// (Error{kInternal} otherwise).
  void add(std::string_view name, std::string_view value);

  /// "name: value\n" lines in name order; control characters and backslashes
  /// in values are escaped.
  const std::string& text() const { return text_; }
  /// XXH3-128 of `text()`: 32 hex digits.
  const std::string& hash() const { return hash_; }
  /// The text without the compiler's identity: what sealed, read-only layers
  /// are matched by.
  std::string text_without_compiler() const;
  /// In name order, values as given to `add`.
  const std::vector<std::pair<std::string, std::string>>& fields() const {
    return fields_;
  }

  /// The inverse of `text()`; nothing when the text is not canonical.
  static std::optional<Key> parse(std::string_view text);

  /// Name of the field that `text_without_compiler` leaves out.
  static constexpr std::string_view kCompilerField = "compiler";

  bool operator==(const Key& other) const { return text_ == other.text_; }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
  std::string text_;
  std::string hash_;
};

}  // namespace logpjit::cache
