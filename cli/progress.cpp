// Telling how far long work has come, on stderr.
#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace logpjit::cli {

Progress::Progress(std::int64_t steps)
    : steps_(steps), terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { clear(); }

namespace {

std::string bar(std::int64_t done, std::int64_t steps) {
  constexpr std::int64_t kWidth = 20;
  const std::int64_t full =
      kWidth * (done - 1) / std::max<std::int64_t>(steps, 1);
  return std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(kWidth - full), '.');
}

}  // namespace

void Progress::step(std::string_view what, std::optional<double> seconds_left) {
  ++done_;
  if (terminal_) {
    const std::string left =
        seconds_left ? fmt::format(" {} {:.0f} s left", bar(done_, steps_),
                                   *seconds_left)
                     : std::string();
    fmt::print(stderr, "\r\x1b[K[{}/{}]{} {}", done_, steps_, left, what);
    std::fflush(stderr);
  } else {
    fmt::print(stderr, "[{}/{}] {}\n", done_, steps_, what);
  }
}

void Progress::clear() {
  if (!terminal_ || done_ == 0) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

}  // namespace logpjit::cli
