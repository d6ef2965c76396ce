// Canonical key text, its escapes and its hash.
#include "cache/key.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cache/digest.hpp"
#include "logpjit/error.hpp"

namespace logpjit::cache {
namespace {

using Field = std::pair<std::string, std::string>;

bool is_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool is_special(char c) {
  const auto code = static_cast<unsigned char>(c);
  return code < 0x20 || code == 0x7f || c == '\\';
}

void append_escaped(std::string& text, std::string_view value) {
  while (!value.empty()) {
    const auto plain = static_cast<std::size_t>(
        std::find_if(value.begin(), value.end(), is_special) - value.begin());
    text.append(value, 0, plain);
    if (plain == value.size()) return;
    const char c = value[plain];
    if (c == '\\') {
      text += "\\\\";
    } else if (c == '\n') {
      text += "\\n";
    } else {
      fmt::format_to(std::back_inserter(text), "\\x{:02x}",
                     static_cast<unsigned char>(c));
    }
    value.remove_prefix(plain + 1);
  }
}

std::string text_of(const std::vector<Field>& fields,
                    std::string_view left_out) {
  std::string text;
  for (const auto& [name, value] : fields) {
    if (name == left_out) continue;
    text += name;
    text += ": ";
    append_escaped(text, value);
    text += '\n';
  }
  return text;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// Lenient: what is not canonical is found by comparing the texts afterwards.
std::string unescaped(std::string_view text) {
  std::string value;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      value += text[i];
      continue;
    }
    const char kind = text[++i];
    if (kind == 'x' && i + 2 < text.size()) {
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      value += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      value += kind == 'n' ? '\n' : kind;
    }
  }
  return value;
}

}  // namespace

Key::Key() : hash_(hex(digest(std::string_view{}))) {}

void Key::add(std::string_view name, std::string_view value) {
  if (!is_name(name)) {
    throw Error(ErrorCode::kInternal,
                fmt::format("cache key: \"{}\" is no field name", name));
  }
  const auto place = std::lower_bound(
      fields_.begin(), fields_.end(), name,
      [](const Field& field, std::string_view n) { return field.first < n; });
  if (place != fields_.end() && place->first == name) {
    throw Error(ErrorCode::kInternal,
                fmt::format("cache key: field \"{}\" given twice", name));
  }
  fields_.emplace(place, name, value);
  text_ = text_of(fields_, {});
  hash_ = hex(digest(text_));
}

std::string Key::text_without_compiler() const {
  return text_of(fields_, kCompilerField);
}

std::optional<Key> Key::parse(std::string_view text) {
  Key key;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    if (end == rest.npos) return std::nullopt;
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    const auto colon = line.find(": ");
    if (colon == line.npos || !is_name(line.substr(0, colon))) {
      return std::nullopt;
    }
    key.fields_.emplace_back(line.substr(0, colon),
                             unescaped(line.substr(colon + 2)));
  }
  const auto not_ascending = [](const Field& a, const Field& b) {
    return a.first >= b.first;
  };
  if (std::adjacent_find(key.fields_.begin(), key.fields_.end(),
                         not_ascending) != key.fields_.end()) {
    return std::nullopt;
  }
  key.text_ = text_of(key.fields_, {});
  if (key.text_ != text) return std::nullopt;
  key.hash_ = hex(digest(key.text_));
  return key;
}

}  // namespace logpjit::cache
