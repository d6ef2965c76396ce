// Starting a worker and talking with it.
#include "tests/support/cache/worker_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

extern char** environ;

namespace logpjit::testing {
namespace {

constexpr uid_t kSomebody = 12345;

void close_if_open(int& file) {
  if (file >= 0) close(file);
  file = -1;
}

}  // namespace

WorkerProcess::WorkerProcess(std::vector<std::string> arguments) {
  ::signal(SIGPIPE, SIG_IGN);
  int in[2];
  int out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
    throw std::runtime_error("no pipes");
  }
  arguments.insert(arguments.begin(), LOGPJIT_CACHE_WORKER);
  std::vector<char*> argv;
  for (std::string& each : arguments) argv.push_back(each.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  const int error = posix_spawn(&pid_, LOGPJIT_CACHE_WORKER, &actions, nullptr,
                                argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  to_ = in[1];
  from_ = out[0];
  if (error != 0) throw std::runtime_error("cannot start the worker");
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      to_(std::exchange(other.to_, -1)),
      from_(std::exchange(other.from_, -1)) {}

WorkerProcess::~WorkerProcess() {
  if (pid_ > 0) {
    signal(SIGKILL);
    finish();
  }
  close_if_open(to_);
  close_if_open(from_);
}

void WorkerProcess::ask(int key, int sleep_ms,
                        const std::filesystem::path& directory) {
  const std::string line =
      fmt::format("{} {} {}\n", key, sleep_ms, directory.string());
  // A worker that is gone shows in `answer`.
  [[maybe_unused]] const auto sent = write(to_, line.data(), line.size());
}

std::string WorkerProcess::answer() {
  std::string line;
  char c = 0;
  while (read(from_, &c, 1) == 1) {
    if (c == '\n') return line;
    line += c;
  }
  return {};
}

std::string WorkerProcess::find(int key, const std::filesystem::path& directory,
                                int sleep_ms) {
  ask(key, sleep_ms, directory);
  return answer();
}

void WorkerProcess::signal(int number) { kill(pid_, number); }

int WorkerProcess::finish() {
  close_if_open(to_);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return status;
}

std::vector<std::string> unprivileged() {
  if (geteuid() != 0) return {};
  return {"--uid", fmt::format("{}", kSomebody)};
}

uid_t unprivileged_user() { return geteuid() == 0 ? kSomebody : geteuid(); }

}  // namespace logpjit::testing
