// Options from the environment: the only file that reads it.
#include "logpjit/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "logpjit/error.hpp"

namespace logpjit {
namespace {

namespace fs = std::filesystem;

/// Nothing when unset or empty. A process with raised privileges (setuid, file
/// capabilities) sees nothing at all: what is named here gets loaded as code.
std::optional<std::string> variable(const char* name) {
  const char* value = ::secure_getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::string text_or(const char* name, std::string fallback) {
  return variable(name).value_or(std::move(fallback));
}

/// The nearest part of `path` that is there, or the error that hides it.
fs::file_status nearest_status(fs::path path, std::error_code& failure) {
  fs::file_status status = fs::status(path, failure);
  while (status.type() == fs::file_type::not_found &&
         path.has_relative_path()) {
    path = path.parent_path();
    status = fs::status(path, failure);
  }
  return status;
}

/// Why `path` cannot hold or lead to a cache; empty when it can. Touches
/// nothing: creating the directory is the cache's business.
std::string objection(const fs::path& path, bool must_exist) {
  if (!path.is_absolute()) return "not an absolute path";
  if (!path.lexically_normal().has_relative_path()) return "the root directory";
  std::error_code failure;
  fs::file_status status = fs::status(path, failure);
  if (status.type() == fs::file_type::not_found) {
    if (must_exist) return "no such directory";
    status = nearest_status(path, failure);
  }
  if (fs::is_directory(status)) return {};
  return failure ? failure.message() : "not a directory";
}

/// One place the cache directory may come from, in order of preference.
struct Candidate {
  const char* variable;
  const char* below;  ///< appended to the variable's value
  bool must_exist;    ///< a made-up home ("/nonexistent") is not created
};

constexpr Candidate kCandidates[] = {
    {"LOGPJIT_CACHE_DIR", "", false},
    {"XDG_CACHE_HOME", "logpjit", false},
    {"HOME", ".cache/logpjit", true},
};

std::string advice(const std::optional<fs::path>& chosen) {
  if (chosen) return fmt::format("using {:?}", chosen->string());
  return "compiled kernels are kept in memory only; set LOGPJIT_CACHE_DIR to "
         "an absolute path to keep them on disk";
}

/// The first usable candidate. Whatever was passed over, and having nothing
/// left, is said in one line.
std::optional<fs::path> find_cache_directory(const LogSink& log) {
  std::vector<std::string> passed_over;
  std::optional<fs::path> chosen;
  for (const Candidate& candidate : kCandidates) {
    const auto value = variable(candidate.variable);
    if (!value) continue;
    const std::string why = objection(*value, candidate.must_exist);
    if (why.empty()) {
      chosen = *candidate.below == '\0' ? fs::path(*value)
                                        : fs::path(*value) / candidate.below;
      break;
    }
    passed_over.push_back(
        fmt::format("{}={:?} ({})", candidate.variable, *value, why));
  }
  if (log && !passed_over.empty()) {
    log(fmt::format("cache: passed over {}: {}", fmt::join(passed_over, ", "),
                    advice(chosen)));
  } else if (log && !chosen) {
    log(fmt::format(
        "cache: none of LOGPJIT_CACHE_DIR, XDG_CACHE_HOME and HOME is set: {}",
        advice(chosen)));
  }
  return chosen;
}

/// The parts of a variable that lists paths; empty ones are nothing.
std::vector<std::string> parts_of(const char* name,
                                  std::string_view separators) {
  std::vector<std::string> parts;
  const std::string list = text_or(name, "");
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end =
        std::min(list.find_first_of(separators, begin), list.size());
    if (end > begin) parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::vector<fs::path> find_read_only_caches(const LogSink& log) {
  constexpr const char* kName = "LOGPJIT_READ_ONLY_CACHES";
  std::vector<fs::path> found;
  for (const std::string& part : parts_of(kName, ":")) {
    const std::string why = objection(part, /*must_exist=*/true);
    if (why.empty()) {
      found.emplace_back(part);
    } else if (log) {
      log(fmt::format("cache: passed over {:?} of {} ({})", part, kName, why));
    }
  }
  return found;
}

/// The loader's own list, which is not logpjit's to comment on: relative
/// folders are left out in silence, since what is found there gets loaded.
std::vector<fs::path> find_library_folders() {
  std::vector<fs::path> folders;
  for (const std::string& part : parts_of("LD_LIBRARY_PATH", ":;")) {
    if (fs::path(part).is_absolute()) folders.emplace_back(part);
  }
  return folders;
}

/// A variable with one value; whether it has it.
bool parse_switch(const char* name, std::string_view on, const char* advice) {
  const auto value = variable(name);
  if (!value) return false;
  if (*value == on) return true;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} is {:?}: the one value it takes is \"{}\"; "
                          "unset it {}",
                          name, *value, on, advice));
}

FallbackUse parse_fallback() {
  const auto value = variable("LOGPJIT_FALLBACK");
  if (!value) return FallbackUse::kWhenNeeded;
  if (*value == "never") return FallbackUse::kNever;
  if (*value == "always") return FallbackUse::kAlways;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("LOGPJIT_FALLBACK is {:?}: it takes \"never\" and "
                          "\"always\"; unset it to have the fallback where a "
                          "kernel cannot be built",
                          *value));
}

/// A whole number in decimal digits, `least` or more.
template <typename Number>
Number parse_number(const char* name, Number fallback, Number least,
                    const char* advice) {
  const auto value = variable(name);
  if (!value) return fallback;
  Number number = 0;
  const char* end = value->data() + value->size();
  const auto parsed = std::from_chars(value->data(), end, number);
  if (parsed.ec == std::errc() && parsed.ptr == end && number >= least) {
    return number;
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} is {:?}: give {}", name, *value, advice));
}

}  // namespace

Options Options::from_environment(LogSink log) {
  Options options;
  options.device = text_or("LOGPJIT_DEVICE", options.device);
  options.cache_directory = find_cache_directory(log);
  options.read_only_caches = find_read_only_caches(log);
  options.never_compile =
      parse_switch("LOGPJIT_COMPILE", "never", "to compile when needed");
  options.fallback = parse_fallback();
  options.caches_off =
      parse_switch("LOGPJIT_CACHE", "off", "to keep what is compiled");
  options.cache_max_bytes = parse_number<std::uint64_t>(
      "LOGPJIT_CACHE_MAX_BYTES", options.cache_max_bytes, 1,
      "a number of bytes, 1 or more");
  options.cache_max_entries = parse_number<std::uint64_t>(
      "LOGPJIT_CACHE_MAX_ENTRIES", options.cache_max_entries, 1,
      "a number of entries, 1 or more");
  options.driver_library = text_or("LOGPJIT_DRIVER", "");
  options.nvrtc_library = text_or("LOGPJIT_NVRTC", "");
  options.nccl_library = text_or("LOGPJIT_NCCL", "");
  options.library_folders = find_library_folders();
  options.host_compiler = text_or("LOGPJIT_HOST_COMPILER", text_or("CXX", ""));
  options.cpu_threads =
      parse_number("LOGPJIT_CPU_THREADS", options.cpu_threads, 0,
                   "a number of threads, 0 for all processors");
  options.record_misses = text_or("LOGPJIT_RECORD_MISSES", "");
  options.log = std::move(log);
  return options;
}

}  // namespace logpjit
