// One command of the program: its name, its flags, what it does.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace logpjit::cli {

// Exit codes of the program.
inline constexpr int kSuccess = 0;
inline constexpr int kFailed = 1;      ///< the operation failed
inline constexpr int kWrongUsage = 2;  ///< the command line cannot be meant

/// Runs a command whose flags have been read; returns the exit code. Failure is
/// an Error, which the program prints.
using Action = std::function<int()>;

struct Command {
  std::string_view name;
  std::string_view summary;
  /// Adds the command's flags to `app`, and returns what runs it.
  Action (*attach)(CLI::App& app);
};

/// All commands, in the order `--help` lists them.
const std::vector<Command>& commands();

}  // namespace logpjit::cli
