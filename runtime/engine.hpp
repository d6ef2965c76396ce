// What a Runtime is inside: the seam's two halves, the cache, the programs.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache/fork_safe_mutex.hpp"
#include "cache/image_cache.hpp"
#include "generator/source.hpp"
#include "logpjit/options.hpp"
#include "logpjit/runtime.hpp"
#include "runtime/compiler.hpp"
#include "runtime/config_lookup.hpp"
#include "runtime/config_use.hpp"
#include "runtime/device.hpp"
#include "runtime/fallback/fallback.hpp"
#include "runtime/launch_table.hpp"
#include "runtime/program.hpp"
#include "runtime/program_table.hpp"

namespace logpjit::runtime {

/// An image and where it came from.
struct Built {
  std::shared_ptr<const cache::Image> image;
  cache::Origin origin = cache::Origin::kCompiled;
  cache::Key key;
};

/// Safe to share between threads.
class Engine {
 public:
  /// Opens the device of `options`.
  explicit Engine(const Options& options);
  /// With a seam of the caller's: tests, and compiling without a device.
  Engine(const Options& options, std::unique_ptr<Device> device,
         std::unique_ptr<Compiler> compiler);

  Device& device() const { return *device_; }
  Compiler& compiler() const { return *compiler_; }
  cache::ImageCache& images() { return images_; }
  const Options& options() const { return options_; }

  /// The prepared program of `spec`; prepares it first when it is new, with a
  /// log line if `stream` is being captured.
  const Program& program(const KernelSpec& spec, CUstream_st* stream) {
    if (const Program* ready = programs_.find(spec)) return *ready;
    return prepare_for(spec, stream);
  }
  const Program& prepare(const KernelSpec& spec);
  /// The program of `spec` if it is prepared and calls are not the fallback's.
  const Program* prepared_program(const KernelSpec& spec) const {
    if (options_.fallback == FallbackUse::kAlways) return nullptr;
    return programs_.find(spec);
  }
  /// `program`, or null where calls of `spec` are the fallback's: it is asked
  /// for, or the kernel cannot be built. Tries to build once; says so once.
  const Program* find_program(const KernelSpec& spec, CUstream_st* stream) {
    if (const Program* ready = prepared_program(spec)) return ready;
    return options_.fallback == FallbackUse::kAlways ||
                   unbuildable_.find(spec) != nullptr
               ? nullptr
               : try_prepare(spec, stream);
  }
  Fallback& fallback() { return fallback_; }
  /// A program with one fixed configuration.
  const Program& fixed_program(const KernelSpec& spec,
                               const LaunchConfig& config);

  /// What identifies the image of one kernel for `target`.
  cache::Key key(const KernelSpec& spec, const LaunchConfig& config,
                 const std::string& target) const;
  /// Finds or compiles the image of one kernel for `target`.
  Built build(const KernelSpec& spec, const LaunchConfig& config,
              const std::string& target);
  /// Builds for this device and loads; an image the device refuses is set aside
  /// and compiled once more.
  Variant load(const KernelSpec& spec, const RowChoice& choice);

  /// Configurations by row count: measured ones where there are any near, else
  /// those of `default_choices`.
  std::vector<RowChoice> choices(const KernelSpec& spec);

  Counters counters() const;
  void count_fallback() { ++fallbacks_; }
  void log(const std::string& line) const;

 private:
  const Program* try_prepare(const KernelSpec& spec, CUstream_st* stream);
  using TunedConfigs = std::vector<TunedConfig>;
  std::shared_ptr<const TunedConfigs> tuned();
  const Program& prepare_for(const KernelSpec& spec, CUstream_st* stream);
  /// Of one configuration: its image, or why there is none.
  struct Outcome {
    LaunchConfig config{};
    std::optional<Built> built{};
    std::exception_ptr failure{};
  };
  std::vector<Outcome> build_side_by_side(const KernelSpec& spec,
                                          std::span<const RowChoice> choices,
                                          std::span<const Variant> present);
  Variant load_built(const KernelSpec& spec, const RowChoice& choice,
                     Built built);
  Variant load_one(const KernelSpec& spec, const RowChoice& choice,
                   std::span<const Outcome> ahead);
  void add_variant(const KernelSpec& spec, RowChoice choice,
                   std::span<const Outcome> ahead,
                   std::vector<Variant>& variants,
                   std::vector<LaunchConfig>& refused);

  Options options_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Compiler> compiler_;
  cache::ImageCache images_;
  ProgramTable programs_;
  ProgramTable unbuildable_;  ///< programs without a variant
  Fallback fallback_;

  ConfigUse config_use_;
  cache::ForkSafeMutex tuned_mutex_;
  std::shared_ptr<const TunedConfigs> tuned_;  ///< null until it was read

  cache::ForkSafeMutex fixed_mutex_;
  std::vector<std::unique_ptr<const Program>> fixed_;

  std::atomic<std::uint64_t> compiled_ = 0;
  std::atomic<std::uint64_t> disk_hits_ = 0;
  std::atomic<std::uint64_t> sealed_hits_ = 0;
  std::atomic<std::uint64_t> rejected_ = 0;
  std::atomic<std::uint64_t> fallbacks_ = 0;
  std::atomic<std::uint64_t> loaded_ = 0;
};

/// What identifies the image of `source` built by `compiler` for `target`.
cache::Key image_key(const generator::Source& source, const Compiler& compiler,
                     const std::string& target);

}  // namespace logpjit::runtime
