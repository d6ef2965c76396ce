// posix_spawn into a process group of its own, read through a pipe with a
// deadline.
#include "runtime/cpu/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>

#include "logpjit/error.hpp"
#include "runtime/compile_gate.hpp"

namespace logpjit::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxOutput = 1 << 20;
/// Longest sleep between two looks at the clock.
constexpr std::chrono::milliseconds kPollStep{200};

[[noreturn]] void fail(const char* what, int error) {
  throw Error(ErrorCode::kIo,
              fmt::format("cannot {}: {}", what, std::strerror(error)));
}

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) fail("make a pipe", errno);
  }
  ~Pipe() {
    close(ends_[0]);
    close_writing();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int reading() const { return ends_[0]; }
  int writing() const { return ends_[1]; }
  void close_writing() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

bool same_name(std::string_view a, std::string_view b) {
  return a.substr(0, a.find('=')) == b.substr(0, b.find('='));
}

/// This process's environment with `overrides`, which must outlive it.
std::vector<char*> environment_with(std::vector<std::string>& overrides) {
  std::vector<char*> entries;
  for (char** entry = environ; entry != nullptr && *entry; ++entry) {
    const bool overridden =
        std::any_of(overrides.begin(), overrides.end(),
                    [&](const auto& text) { return same_name(text, *entry); });
    if (!overridden) entries.push_back(*entry);
  }
  for (std::string& text : overrides) entries.push_back(text.data());
  entries.push_back(nullptr);
  return entries;
}

/// Where the program's streams go, and where it runs.
class FileActions {
 public:
  FileActions(int output, const std::string& directory) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null",
                                     O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
    if (!directory.empty()) {
      posix_spawn_file_actions_addchdir_np(&actions_, directory.c_str());
    }
  }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

/// A process group of its own and no signal blocked.
class Attributes {
 public:
  Attributes() {
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setsigmask(&attributes_, &none);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

/// Nothing if there is no such program.
std::optional<pid_t> start(const ProcessRequest& request, int output) {
  std::vector<char*> arguments;
  arguments.reserve(request.command.size() + 1);
  for (const std::string& argument : request.command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  const FileActions actions(output, request.directory.string());
  const Attributes attributes;
  std::vector<std::string> overrides = request.environment;
  const std::vector<char*> environment = environment_with(overrides);
  pid_t process = 0;
  const int error =
      posix_spawnp(&process, arguments[0], actions.get(), attributes.get(),
                   arguments.data(), environment.data());
  if (error == 0) return process;
  if (error == ENOENT || error == EACCES || error == ENOTDIR ||
      error == ENOEXEC) {
    return std::nullopt;
  }
  fail("start a process", error);
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(
      left.count(), 0, std::chrono::milliseconds(kPollStep).count()));
}

/// False when the pipe is closed on the other side.
bool read_some(int pipe, std::string& output) {
  std::array<char, 4096> buffer;
  const ssize_t count = read(pipe, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  const std::size_t room = kMaxOutput - output.size();
  output.append(buffer.data(), std::min<std::size_t>(count, room));
  return count > 0;
}

/// Reads to the end of the output; false if time ran out first.
bool read_all(int pipe, Clock::time_point deadline, std::string& output) {
  for (;;) {
    pollfd waiting{pipe, POLLIN, 0};
    const int ready = poll(&waiting, 1, milliseconds_until(deadline));
    if (ready > 0 && !read_some(pipe, output)) return true;
    if (ready <= 0 && Clock::now() >= deadline) return false;
  }
}

int exit_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// How the program ended, or nothing if it still runs at the deadline.
std::optional<int> wait_until(pid_t process, Clock::time_point deadline) {
  for (std::chrono::milliseconds pause{1};;
       pause = std::min(2 * pause, kPollStep)) {
    int status = 0;
    const pid_t ended = waitpid(process, &status, WNOHANG);
    if (ended == process) return exit_code(status);
    // Where SIGCHLD is ignored the system reaps children itself: nobody can
    // tell how this one ended, what it made must.
    if (ended < 0 && errno != EINTR) return 0;
    if (Clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(pause);
  }
}

int kill_group(pid_t process) {
  kill(-process, SIGKILL);
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return exit_code(status);
}

Clock::time_point after(double seconds) {
  constexpr double kForever = 1e6;
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(
             std::chrono::duration<double>(std::clamp(seconds, 0.0, kForever)));
}

/// Opens `pipe`, whose writing end only the program has afterwards.
std::optional<pid_t> start_writing_to(std::optional<Pipe>& pipe,
                                      const ProcessRequest& request) {
  // A process forked by another thread now would keep the writing end, and the
  // output would never end.
  const CompileGate gate;
  pipe.emplace();
  const std::optional<pid_t> process = start(request, pipe->writing());
  pipe->close_writing();
  return process;
}

}  // namespace

ProcessResult run_process(const ProcessRequest& request) {
  const Clock::time_point deadline = after(request.timeout_s);
  std::optional<Pipe> pipe;
  ProcessResult result;
  const std::optional<pid_t> process = start_writing_to(pipe, request);
  result.found = process.has_value();
  if (!process) return result;
  std::optional<int> code;
  if (read_all(pipe->reading(), deadline, result.output)) {
    code = wait_until(*process, deadline);
  }
  result.timed_out = !code.has_value();
  result.exit_code = code ? *code : kill_group(*process);
  return result;
}

}  // namespace logpjit::runtime
