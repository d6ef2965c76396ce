// A cache_worker process and its pipes.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace logpjit::testing {

class WorkerProcess {
 public:
  /// Starts the program with these arguments.
  explicit WorkerProcess(std::vector<std::string> arguments = {});
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  WorkerProcess(WorkerProcess&& other) noexcept;
  /// Kills it when it still runs.
  ~WorkerProcess();

  pid_t pid() const { return pid_; }

  /// Starts one find_or_compile.
  void ask(int key, int sleep_ms, const std::filesystem::path& directory);
  /// Waits for the answer; empty when the process has ended.
  std::string answer();
  /// Both.
  std::string find(int key, const std::filesystem::path& directory,
                   int sleep_ms = 0);

  void signal(int number);
  /// Closes its input and waits for its end; the status of waitpid.
  int finish();

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
};

/// Arguments that take root's powers from a worker; none when this process has
/// no such powers.
std::vector<std::string> unprivileged();
/// The user that such a worker is.
uid_t unprivileged_user();

}  // namespace logpjit::testing
