// Reading lists of kernels.
#include "cli/spec_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>

#include "cli/arch_builder.hpp"
#include "cli/flags.hpp"
#include "cli/suggest.hpp"
#include "logpjit/error.hpp"

namespace logpjit::cli {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

[[noreturn]] void refuse_value(const std::string& field,
                               const std::string& value,
                               const std::vector<std::string>& known) {
  refuse(fmt::format("{}: '{}' is unknown{}", field, value,
                     suggestion(value, known)));
}

bool parse_bit(const std::string& field, const std::string& value) {
  if (value == "1") return true;
  if (value == "0") return false;
  refuse(fmt::format("{}: '{}' is neither 0 nor 1", field, value));
}

std::int64_t parse_columns(const std::string& value) {
  std::int64_t number = 0;
  const char* end = value.data() + value.size();
  const auto read = std::from_chars(value.data(), end, number);
  if (read.ec != std::errc{} || read.ptr != end || number < 1) {
    refuse(fmt::format("vocab: '{}' is no number from 1 on", value));
  }
  return number;
}

RowMap parse_rows(const std::string& value) {
  if (value == "strided") return RowMap::kStrided;
  if (value == "strided2") return RowMap::kStrided2;
  if (value == "indexed") return RowMap::kIndexed;
  refuse_value("rows", value, {"strided", "strided2", "indexed"});
}

GradStore parse_store(const std::string& value) {
  if (value == "write") return GradStore::kWrite;
  if (value == "accumulate") return GradStore::kAccumulate;
  refuse_value("store", value, {"write", "accumulate"});
}

void check_family(const std::string& value) {
  if (value == fmt::format("{}", KernelSpec::kFamily)) return;
  refuse(fmt::format("family: this version makes kernels of family {}, not {}",
                     KernelSpec::kFamily, value));
}

using Setter = void (*)(KernelSpec& spec, const std::string& value);

/// Every field of a specification but `op`, which comes first.
const std::map<std::string, Setter>& setters() {
  static const std::map<std::string, Setter> table = {
      {"family", [](KernelSpec&, const std::string& v) { check_family(v); }},
      {"other",
       [](KernelSpec& s, const std::string& v) {
         s.other = parse_float_flag("other", v);
       }},
      {"ids",
       [](KernelSpec& s, const std::string& v) { s.ids = parse_ids_flag(v); }},
      {"vocab",
       [](KernelSpec& s, const std::string& v) { s.vocab = parse_columns(v); }},
      {"many_ids",
       [](KernelSpec& s, const std::string& v) {
         s.many_ids = parse_bit("many_ids", v);
       }},
      {"rows",
       [](KernelSpec& s, const std::string& v) { s.rows = parse_rows(v); }},
      {"aligned",
       [](KernelSpec& s, const std::string& v) {
         s.aligned = parse_bit("aligned", v);
       }},
      {"temperature",
       [](KernelSpec& s, const std::string& v) {
         s.temperature = parse_bit("temperature", v);
       }},
      {"softcap",
       [](KernelSpec& s, const std::string& v) {
         s.softcap = parse_bit("softcap", v);
       }},
      {"store",
       [](KernelSpec& s, const std::string& v) { s.store = parse_store(v); }},
      {"grad_a",
       [](KernelSpec& s, const std::string& v) {
         s.grad_a = parse_bit("grad_a", v);
       }},
      {"grad_b",
       [](KernelSpec& s, const std::string& v) {
         s.grad_b = parse_bit("grad_b", v);
       }},
  };
  return table;
}

using Fields = std::map<std::string, std::string>;

Fields split_fields(std::string_view line) {
  Fields fields;
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    if (line.empty()) return fields;
    const std::string_view word =
        line.substr(0, std::min(line.find_first_of(" \t\r"), line.size()));
    line.remove_prefix(word.size());
    const std::size_t sign = word.find('=');
    if (sign == word.npos || sign == 0 || sign + 1 == word.size()) {
      refuse(fmt::format("'{}' is not of the form field=value", word));
    }
    std::string field(word.substr(0, sign));
    if (field == "dtype") field = "logits";
    if (!fields.emplace(field, word.substr(sign + 1)).second) {
      refuse(fmt::format("{}: given twice", field));
    }
  }
}

/// Takes a field that must be there.
std::string demand(Fields& fields, const std::string& field) {
  auto node = fields.extract(field);
  if (node.empty()) refuse(fmt::format("{}: missing", field));
  return node.mapped();
}

/// Takes a field that may be.
std::string take(Fields& fields, const std::string& field) {
  auto node = fields.extract(field);
  return node.empty() ? "" : node.mapped();
}

void set_field(KernelSpec& spec, const std::string& field,
               const std::string& value) {
  const auto setter = setters().find(field);
  if (setter != setters().end()) return setter->second(spec, value);
  std::vector<std::string> known{"op", "logits", "arch", "config"};
  for (const auto& [name, ignored] : setters()) known.push_back(name);
  refuse_value("field", field, known);
}

}  // namespace

WantedKernel parse_wanted(std::string_view line,
                          const std::vector<Arch>& default_archs) {
  Fields fields = split_fields(line);
  WantedKernel wanted;
  wanted.spec = parse_op_flag(demand(fields, "op"));
  wanted.spec.logits = parse_float_flag("logits", demand(fields, "logits"));
  wanted.spec.other = wanted.spec.logits;
  wanted.config = take(fields, "config");
  const std::string archs = take(fields, "arch");
  wanted.archs = archs.empty() ? default_archs : parse_archs(archs);
  for (const auto& [field, value] : fields) {
    set_field(wanted.spec, field, value);
  }
  if (wanted.spec.vocab == 0) refuse("vocab: missing");
  if (wanted.archs.empty()) refuse("arch: missing (or give --arch)");
  return wanted;
}

std::vector<WantedKernel> read_spec_list(
    const std::filesystem::path& file, const std::vector<Arch>& default_archs) {
  std::ifstream in(file);
  if (!in || std::filesystem::is_directory(file)) {
    throw Error(ErrorCode::kIo,
                fmt::format("cannot read the list {}", file.string()));
  }
  std::vector<WantedKernel> wanted;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == line.npos || line[begin] == '#') continue;
    try {
      wanted.push_back(parse_wanted(line, default_archs));
    } catch (const Error& error) {
      refuse(fmt::format("{}:{}: {}", file.string(), number, error.message()));
    }
  }
  if (wanted.empty()) refuse(fmt::format("{}: no kernel in it", file.string()));
  return wanted;
}

}  // namespace logpjit::cli
