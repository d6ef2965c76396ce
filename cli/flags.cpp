// Flags that several commands share, and the names they take.
#include "cli/flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "cli/suggest.hpp"
#include "logpjit/error.hpp"

namespace logpjit::cli {
namespace {

[[noreturn]] void refuse(std::string_view flag, std::string_view value,
                         const std::vector<std::string>& known) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: '{}' is unknown{} (known: {})", flag, value,
                          suggestion(value, known), fmt::join(known, ", ")));
}

std::vector<std::string> known_ops() {
  std::vector<std::string> names;
  for (const char* term :
       {"logp", "entropy", "logp+entropy", "lse", "squares", "argmax", "kl"}) {
    names.emplace_back(term);
  }
  for (const char* term : {"logp", "entropy", "logp+entropy", "kl"}) {
    for (const char* pass : {"backward", "with_grad"}) {
      names.push_back(fmt::format("{}_{}", term, pass));
    }
  }
  return names;
}

}  // namespace

KernelSpec parse_op_flag(std::string_view text) {
  if (const auto spec = parse_op(text)) return *spec;
  refuse("--op", text, known_ops());
}

DType parse_float_flag(std::string_view flag, std::string_view text) {
  const auto dtype = parse_dtype(text);
  if (dtype && is_float(*dtype)) return *dtype;
  refuse(flag, text, {"fp32", "bf16", "fp16"});
}

DType parse_ids_flag(std::string_view text) {
  const auto dtype = parse_dtype(text);
  if (dtype && !is_float(*dtype)) return *dtype;
  refuse("--ids", text, {"int32", "int64"});
}

CLI::Option* add_integer(CLI::App& app, const std::string& flag,
                         std::int64_t& value, const std::string& what) {
  return app
      .add_option_function<std::string>(
          flag,
          [&value, flag](const std::string& text) {
            const char* end = text.data() + text.size();
            const auto read = std::from_chars(text.data(), end, value);
            if (read.ec == std::errc{} && read.ptr == end) return;
            throw CLI::ValidationError(
                flag, fmt::format("'{}' is no integer of 64 bits", text));
          },
          what)
      ->type_name("INT");
}

std::int64_t check_positive(std::string_view flag, std::int64_t value) {
  if (value >= 1) return value;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: must be 1 or more, got {}", flag, value));
}

LaunchConfig parse_config_flag(std::string_view text,
                               const LaunchConfig& defaults) {
  LaunchConfig config = defaults;
  std::vector<std::string> known;
  for (const auto& [key, value] : defaults.values()) known.push_back(key);
  const LaunchConfig given = LaunchConfig::parse(text);
  for (const auto& [key, value] : given.values()) {
    if (!defaults.find(key)) refuse("--config", key, known);
    config.set(key, value);
  }
  return config;
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

void KernelFlags::attach(CLI::App& app) {
  app.add_option("--op", op, "Operation: logp, logp+entropy, ...")->required();
  app.add_option("--dtype", dtype, "Logits: fp32, bf16 or fp16")->required();
  add_integer(app, "--vocab", vocab, "Columns of the logits")->required();
  app.add_option("--ids", ids, "Ids: int32 or int64")->capture_default_str();
}

KernelSpec KernelFlags::spec() const {
  KernelSpec spec = parse_op_flag(op);
  spec.logits = parse_float_flag("--dtype", dtype);
  spec.other = spec.logits;
  spec.ids = parse_ids_flag(ids);
  spec.vocab = check_positive("--vocab", vocab);
  return spec;
}

void DeviceFlags::attach_device(CLI::App& app) {
  app.add_option("--device", device, "cpu, cuda or cuda:<i>")->required();
}

void DeviceFlags::attach_directory(CLI::App& app) {
  app.add_option("--cache-dir", cache_directory,
                 "Where compiled kernels are kept");
}

void DeviceFlags::attach_cache(CLI::App& app) {
  attach_directory(app);
  CLI::Option* required =
      app.add_flag("--require-cached", require_cached,
                   "Never compile: a kernel that is in no cache is an error");
  app.add_flag("--no-cache", no_cache,
               "Compile everything, keep nothing: for cold measurements")
      ->excludes(required);
}

Options DeviceFlags::options() const {
  Options options = Options::from_environment([](const std::string& line) {
    fmt::print(stderr, "logpjit: warning: {}\n", line);
  });
  if (!device.empty()) options.device = device;
  if (!cache_directory.empty()) {
    options.cache_directory = std::filesystem::absolute(cache_directory);
  }
  // A flag overrules what the environment says to the contrary.
  if (require_cached) options.never_compile = true, options.caches_off = false;
  if (no_cache) options.caches_off = true, options.never_compile = false;
  return options;
}

}  // namespace logpjit::cli
