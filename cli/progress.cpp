// Telling how far long work has come, on stderr.
#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace logpjit::cli {

Progress::Progress(std::int64_t steps)
    : steps_(steps), terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { clear(); }

void Progress::step(std::string_view what) {
  ++done_;
  if (terminal_) {
    fmt::print(stderr, "\r\x1b[K[{}/{}] {}", done_, steps_, what);
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
