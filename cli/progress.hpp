// Telling how far long work has come, on stderr.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace logpjit::cli {

/// On a terminal one line that is written over; elsewhere one line per step.
/// For one thread.
class Progress {
 public:
  explicit Progress(std::int64_t steps);
  /// Wipes the line from a terminal.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool on_terminal() const { return terminal_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }
  /// Says that a step begins. With the seconds that are left, a terminal shows
  /// a bar and them.
  void step(std::string_view what,
            std::optional<double> seconds_left = std::nullopt);
  /// Wipes the line, before something else is printed.
  void clear();

 private:
  std::int64_t steps_;
  std::int64_t done_ = 0;
  bool terminal_;
};

}  // namespace logpjit::cli
