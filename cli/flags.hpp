// Flags that several commands share, and the names they take.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "logpjit/dtype.hpp"
#include "logpjit/kernel_spec.hpp"
#include "logpjit/launch_config.hpp"
#include "logpjit/options.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace logpjit::cli {

// Each parser throws Error{kInvalidArgument} that names the flag, the value,
// the nearest known name and all known ones.

/// "logp", "logp+entropy", ...
KernelSpec parse_op_flag(std::string_view text);
/// fp32, bf16 or fp16.
DType parse_float_flag(std::string_view flag, std::string_view text);
/// int32 or int64.
DType parse_ids_flag(std::string_view text);
/// An integer flag; what is none, or too large for 64 bits, is refused.
CLI::Option* add_integer(CLI::App& app, const std::string& flag,
                         std::int64_t& value, const std::string& what);
/// 1 or more.
std::int64_t check_positive(std::string_view flag, std::int64_t value);
/// `defaults` with the values of "block=512,unroll=4" put in.
LaunchConfig parse_config_flag(std::string_view text,
                               const LaunchConfig& defaults);
/// "a,b,c" without empty parts.
std::vector<std::string> split_list(std::string_view text);

/// The flags that say which kernel: --op, --dtype, --vocab, --ids.
struct KernelFlags {
  std::string op;
  std::string dtype;
  std::int64_t vocab = 0;
  std::string ids = "int64";

  void attach(CLI::App& app);
  KernelSpec spec() const;
};

/// The flags that say where: --device, --cache-dir, --require-cached and
/// --no-cache, over the environment.
struct DeviceFlags {
  std::string device;
  std::string cache_directory;
  bool require_cached = false;
  bool no_cache = false;

  void attach_device(CLI::App& app);
  /// --cache-dir alone: for what only looks after the cache.
  void attach_directory(CLI::App& app);
  /// All three flags about caches: for what may compile.
  void attach_cache(CLI::App& app);
  /// Warnings of the runtime go to stderr, one line each.
  Options options() const;
};

}  // namespace logpjit::cli
