// The miss file: one tuned shape a line, each once.
#include "runtime/config_use.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "cache/fork_safe_mutex.hpp"
#include "runtime/config_lookup.hpp"

namespace logpjit::runtime {

/// Appends whole lines, so that several processes may share the file.
class MissFile {
 public:
  MissFile(std::filesystem::path file, LogSink log)
      : file_(std::move(file)), log_(std::move(log)) {}

  void add(const KernelSpec& spec, std::int64_t rows) {
    {
      const std::lock_guard lock(mutex_);
      if (!seen_.insert({spec, rows}).second) return;
    }
    const std::string line =
        TunedShape{.spec = spec, .rows = rows}.text() + "\n";
    const int file =
        ::open(file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    const bool written = file >= 0 && ::write(file, line.data(), line.size()) ==
                                          static_cast<ssize_t>(line.size());
    const int error = errno;
    if (file >= 0) ::close(file);
    if (!written && !warned_.exchange(true) && log_) {
      log_(fmt::format("untuned calls are not recorded in {}: {}",
                       file_.string(), std::strerror(error)));
    }
  }

 private:
  const std::filesystem::path file_;
  const LogSink log_;
  cache::ForkSafeMutex mutex_;
  std::set<std::pair<KernelSpec, std::int64_t>> seen_;
  std::atomic<bool> warned_ = false;
};

ConfigUse::ConfigUse(const std::filesystem::path& miss_file, LogSink log) {
  if (!miss_file.empty()) {
    misses_ = std::make_unique<MissFile>(miss_file, std::move(log));
  }
}

ConfigUse::~ConfigUse() = default;

/// Row counts vary from call to call; what is tuned are powers of two.
void ConfigUse::write_down(const KernelSpec& spec, std::int64_t rows) {
  misses_->add(spec, static_cast<std::int64_t>(
                         std::bit_ceil(static_cast<std::uint64_t>(rows))));
}

}  // namespace logpjit::runtime
