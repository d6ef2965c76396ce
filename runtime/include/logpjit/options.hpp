// What a Runtime is made from, and the one place that reads the environment.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "logpjit/api.hpp"

namespace logpjit {

/// Called with one line per warning or notable event. May be called from any
/// thread that uses the Runtime, and must not call back into it.
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
  /// A kernel that is in no cache is Error{kNotCached} instead of a compile.
  bool never_compile = false;
  FallbackUse fallback = FallbackUse::kWhenNeeded;

  /// Explicit library files, tried after copies already in the process.
  std::string driver_library;
  std::string nvrtc_library;
  /// Folders searched for those libraries before the well-known ones.
  std::vector<std::filesystem::path> library_folders;
  /// C++ compiler of the CPU device; empty = $CXX, then c++, g++, clang++.
  std::string host_compiler;
  /// Longest time one host compile may take, seconds.
  double compile_timeout_s = 120;
  /// OS threads the CPU device runs blocks on; 0 = all.
  int cpu_threads = 0;

  LogSink log;  ///< silent when empty

  /// Defaults plus what the environment says: LOGPJIT_DEVICE,
  /// LOGPJIT_CACHE_DIR, LOGPJIT_READ_ONLY_CACHES (':'-separated),
  /// LOGPJIT_COMPILE=never, LOGPJIT_FALLBACK=never|always, LOGPJIT_DRIVER,
  /// LOGPJIT_NVRTC, LOGPJIT_HOST_COMPILER, LOGPJIT_CPU_THREADS, LD_LIBRARY_PATH
  /// (library folders); the cache directory falls back to
  /// $XDG_CACHE_HOME/logpjit, then $HOME/.cache/logpjit, then memory only.
  /// Relative or unusable directories are passed over with a log line.
  static Options from_environment(LogSink log = {});
};

}  // namespace logpjit
