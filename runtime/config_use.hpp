// Counting where launch configurations came from, and writing down what was
// not measured.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "logpjit/kernel_spec.hpp"
#include "logpjit/launch_config.hpp"
#include "logpjit/options.hpp"

namespace logpjit::runtime {

class MissFile;

/// Safe to share between threads. Without a miss file, counting is one atomic
/// addition.
class ConfigUse {
 public:
  /// `miss_file` empty = nothing is written down.
  ConfigUse(const std::filesystem::path& miss_file, LogSink log);
  ~ConfigUse();

  void count(const KernelSpec& spec, ConfigSource source, std::int64_t rows) {
    counts_[static_cast<std::size_t>(source)].fetch_add(
        1, std::memory_order_relaxed);
    if (misses_ != nullptr && source != ConfigSource::kExact) {
      write_down(spec, rows);
    }
  }
  std::uint64_t launches(ConfigSource source) const {
    return counts_[static_cast<std::size_t>(source)].load(
        std::memory_order_relaxed);
  }

 private:
  void write_down(const KernelSpec& spec, std::int64_t rows);

  std::array<std::atomic<std::uint64_t>, 4> counts_{};
  std::unique_ptr<MissFile> misses_;
};

}  // namespace logpjit::runtime
