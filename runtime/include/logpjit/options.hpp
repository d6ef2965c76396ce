// What a Runtime is made from, and the one place that reads the environment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "logpjit/api.hpp"

namespace logpjit {

/// Called with one line per warning or notable event. May be called from any
/// thread that uses the Runtime, or that it compiles on, and must not call back
/// into it.
using LogSink = std::function<void(const std::string&)>;

/// When calls are served by the fallback: kernels that are built with the
/// project, slower than specialised ones and of other bits in the last places.
enum class FallbackUse {
  kWhenNeeded,  ///< where a kernel cannot be built: no compiler, or it fails
  kNever,       ///< what cannot be built is an error
  kAlways,      ///< nothing is compiled
};

struct LOGPJIT_API Options {
  /// "cpu", "cuda" (= "cuda:0") or "cuda:<i>".
  std::string device = "cuda";

  /// Writable cache directory. Nothing = memory only.
  std::optional<std::filesystem::path> cache_directory;
  /// Searched after `cache_directory`, in order, never written.
  std::vector<std::filesystem::path> read_only_caches;
  /// A kernel that is in no cache is Error{kNotCached} listing its key instead
  /// of a compile.
  bool never_compile = false;
  FallbackUse fallback = FallbackUse::kWhenNeeded;
  /// For cold measurements: nothing is read from or kept in any cache, in
  /// memory or on disk, and the driver keeps none either: a Runtime on a GPU
  /// sets CUDA_CACHE_DISABLE=1 for this process, which the driver heeds when
  /// nobody has started it yet. Excludes `never_compile`.
  bool caches_off = false;
  /// Limits of `cache_directory`: over one of them, what was not used for
  /// longest is removed.
  std::uint64_t cache_max_bytes = std::uint64_t{1} << 30;
  std::uint64_t cache_max_entries = 20000;

  /// Explicit library files, tried after copies already in the process.
  std::string driver_library;
  std::string nvrtc_library;
  std::string nccl_library;
  /// Folders searched for those libraries before the well-known ones.
  std::vector<std::filesystem::path> library_folders;
  /// C++ compiler of the CPU device; empty = $CXX, then c++, g++, clang++.
  std::string host_compiler;
  /// Longest time one host compile may take, seconds.
  double compile_timeout_s = 120;
  /// OS threads the CPU device runs blocks on; 0 = all.
  int cpu_threads = 0;

  /// Calls whose launch configuration was not measured for them are written
  /// down here, once each, for `logpjit pretune --from`; empty = nowhere.
  /// Costs a lock for each such call.
  std::filesystem::path record_misses;

  LogSink log;  ///< silent when empty

  /// Defaults plus what the environment says: LOGPJIT_DEVICE,
  /// LOGPJIT_CACHE_DIR, LOGPJIT_READ_ONLY_CACHES (':'-separated),
  /// LOGPJIT_COMPILE=never, LOGPJIT_FALLBACK=never|always, LOGPJIT_CACHE=off,
  /// LOGPJIT_CACHE_MAX_BYTES, LOGPJIT_CACHE_MAX_ENTRIES, LOGPJIT_DRIVER,
  /// LOGPJIT_NVRTC, LOGPJIT_NCCL, LOGPJIT_HOST_COMPILER, LOGPJIT_CPU_THREADS,
  /// LOGPJIT_RECORD_MISSES, LD_LIBRARY_PATH (library folders); the cache
  /// directory falls back to $XDG_CACHE_HOME/logpjit, then
  /// $HOME/.cache/logpjit, then memory only.
  /// Relative or unusable directories are passed over with a log line. Any
  /// other value of LOGPJIT_COMPILE, LOGPJIT_FALLBACK or LOGPJIT_CACHE, and a
  /// LOGPJIT_CPU_THREADS or limit that is no number in range, is
  /// Error{kInvalidArgument}: guessing would do the opposite of what somebody
  /// asked for.
  static Options from_environment(LogSink log = {});
};

}  // namespace logpjit
