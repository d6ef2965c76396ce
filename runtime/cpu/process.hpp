// Another program, run to its end: no shell, no input, output captured.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace logpjit::runtime {

struct ProcessRequest {
  /// The program, looked up on PATH unless it has a '/', and its arguments.
  std::vector<std::string> command;
  std::filesystem::path directory;  ///< to run in; empty = this process's
  /// "NAME=value": set for the program on top of this process's environment.
  std::vector<std::string> environment;
  double timeout_s = 0;
};

struct ProcessResult {
  bool found = true;       ///< false: no such program, or not executable
  bool timed_out = false;  ///< it and its process group were killed
  /// Of the program; 128 + n if signal n ended it.
  int exit_code = 0;
  std::string output;  ///< stdout and stderr as they came, first 1 MiB
};

/// Blocks until the program has ended or time is up. Throws Error{kIo} when no
/// process can be made.
ProcessResult run_process(const ProcessRequest& request);

}  // namespace logpjit::runtime
