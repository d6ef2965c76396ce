// A device, its compiler, its kernels and their caches, in one object.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "logpjit/api.hpp"
#include "logpjit/device.hpp"
#include "logpjit/error.hpp"
#include "logpjit/kernel_spec.hpp"
#include "logpjit/launch_config.hpp"
#include "logpjit/options.hpp"

/// A CUDA stream; a cudaStream_t or CUstream passes unchanged. Null is the
/// legacy default stream. The CPU device ignores it.
struct CUstream_st;

namespace logpjit {

namespace runtime {
class Engine;
class Program;
}  // namespace runtime

/// A kernel that is compiled, loaded and resolved: launching it never compiles,
/// allocates, locks, reads the environment, queries the device or synchronises.
/// A cheap handle, valid as long as its Runtime; safe to share between threads.
class LOGPJIT_API Kernel {
 public:
  Kernel() = default;
  explicit Kernel(const runtime::Program* program) : program_(program) {}

  explicit operator bool() const { return program_ != nullptr; }
  const KernelSpec& spec() const;
  /// The configuration used for `rows` rows.
  const LaunchConfig& config(std::int64_t rows) const;
  /// Where that came from. Of a kernel made with one fixed configuration:
  /// kDefault.
  ConfigSource config_source(std::int64_t rows) const;
  const runtime::Program& program() const { return *program_; }

 private:
  const runtime::Program* program_ = nullptr;
};

/// How often a Runtime did what. Monotonic.
struct Counters {
  std::uint64_t compiled = 0;     ///< images made by a compiler
  std::uint64_t disk_hits = 0;    ///< images read from a writable cache
  std::uint64_t sealed_hits = 0;  ///< images read from a read-only cache
  std::uint64_t rejected = 0;     ///< images a device refused
  std::uint64_t fallbacks = 0;    ///< calls served by the fallback
  std::uint64_t loaded = 0;       ///< kernels loaded into the device

  // Launches by where their configuration came from; see ConfigSource.
  std::uint64_t default_configs = 0;
  std::uint64_t exact_configs = 0;
  std::uint64_t nearest_configs = 0;
  std::uint64_t other_device_configs = 0;
};

/// Made, passed, destroyed: there are no globals. Safe to share between
/// threads. Must outlive the device work it started.
class LOGPJIT_API Runtime {
 public:
  /// Opens the device; throws Error{kUnavailable} with the reason when there is
  /// none. Opens no compiler: that happens at the first miss.
  explicit Runtime(const Options& options = {});
  /// Over an engine that was made apart: for tests.
  explicit Runtime(std::unique_ptr<runtime::Engine> engine);
  ~Runtime();
  Runtime(Runtime&&) noexcept;
  Runtime& operator=(Runtime&&) noexcept;

  const DeviceInfo& device() const;

  /// Reads, compiles and loads what calls of these specs will need. Loading
  /// waits for all kernels running in the device's context, so call it before
  /// training starts and before any collective is in flight. Throws the first
  /// failure after trying all; a kernel that cannot be built is none where the
  /// fallback serves its calls, but a line in the log.
  void prepare(std::span<const KernelSpec> specs);

  /// Prepares one kernel and hands it out, with tuned or default launch
  /// configurations.
  Kernel kernel(const KernelSpec& spec);
  /// The same with one fixed configuration; Error{kInvalidArgument} when the
  /// template does not allow it.
  Kernel kernel(const KernelSpec& spec, const LaunchConfig& config);

  Counters counters() const;

  /// The inside, for the command, the tuner and the tests.
  runtime::Engine& engine() const { return *engine_; }

 private:
  std::unique_ptr<runtime::Engine> engine_;
};

}  // namespace logpjit
