// Ending long work early and in order.
#pragma once

namespace logpjit::cli {

/// While it lives, the first SIGINT or SIGTERM only sets a flag, and the next
/// one ends the program as usual. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static bool interrupted();
};

}  // namespace logpjit::cli
