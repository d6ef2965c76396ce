// The inverse of KernelSpec::text(): fields in any order, then compared with
// what the text of the result is.
#include "generator/spec_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

namespace logpjit::generator {
namespace {

bool read_number(std::string_view text, std::int64_t& number) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

bool read_flag(std::string_view text, bool& flag) {
  flag = text == "1";
  return flag || text == "0";
}

bool read_dtype(std::string_view text, DType& dtype) {
  const auto read = parse_dtype(text);
  if (read) dtype = *read;
  return read.has_value();
}

bool read_family(std::string_view text, KernelSpec&) {
  std::int64_t family = 0;
  return read_number(text, family) && family == KernelSpec::kFamily;
}

bool read_op(std::string_view text, KernelSpec& spec) {
  const auto op = parse_op(text);
  if (!op) return false;
  spec.terms = op->terms;
  spec.pass = op->pass;
  return true;
}

bool read_rows(std::string_view text, KernelSpec& spec) {
  for (const RowMap map :
       {RowMap::kStrided, RowMap::kStrided2, RowMap::kIndexed}) {
    spec.rows = map;
    KernelSpec probe;
    probe.rows = map;
    probe.vocab = 1;
    const std::string field = " rows=" + std::string(text) + " ";
    if (probe.text().find(field) != std::string::npos) return true;
  }
  return false;
}

bool read_store(std::string_view text, KernelSpec& spec) {
  spec.store = text == "write" ? GradStore::kWrite : GradStore::kAccumulate;
  return text == "write" || text == "accumulate";
}

struct Field {
  std::string_view key;
  bool (*read)(std::string_view, KernelSpec&);
};

constexpr std::array kFields{
    Field{"family", read_family},
    Field{"op", read_op},
    Field{"logits",
          [](std::string_view text, KernelSpec& spec) {
            return read_dtype(text, spec.logits);
          }},
    Field{"other",
          [](std::string_view text, KernelSpec& spec) {
            return read_dtype(text, spec.other);
          }},
    Field{"ids", [](std::string_view text,
                    KernelSpec& spec) { return read_dtype(text, spec.ids); }},
    Field{"many_ids",
          [](std::string_view text, KernelSpec& spec) {
            return read_flag(text, spec.many_ids);
          }},
    Field{"vocab",
          [](std::string_view text, KernelSpec& spec) {
            return read_number(text, spec.vocab) && spec.vocab >= 1;
          }},
    Field{"rows", read_rows},
    Field{"aligned",
          [](std::string_view text, KernelSpec& spec) {
            return read_flag(text, spec.aligned);
          }},
    Field{"temperature",
          [](std::string_view text, KernelSpec& spec) {
            return read_flag(text, spec.temperature);
          }},
    Field{"softcap",
          [](std::string_view text, KernelSpec& spec) {
            return read_flag(text, spec.softcap);
          }},
    Field{"store", read_store},
    Field{"grad_a",
          [](std::string_view text, KernelSpec& spec) {
            return read_flag(text, spec.grad_a);
          }},
    Field{"grad_b",
          [](std::string_view text, KernelSpec& spec) {
            return read_flag(text, spec.grad_b);
          }},
};

bool read_field(std::string_view word, KernelSpec& spec) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return false;
  for (const Field& field : kFields) {
    if (field.key == word.substr(0, equals)) {
      return field.read(word.substr(equals + 1), spec);
    }
  }
  return false;
}

}  // namespace

std::optional<KernelSpec> parse_spec_text(std::string_view text) {
  KernelSpec spec;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (!read_field(rest.substr(0, end), spec)) return std::nullopt;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (spec.text() != text) return std::nullopt;
  return spec;
}

}  // namespace logpjit::generator
