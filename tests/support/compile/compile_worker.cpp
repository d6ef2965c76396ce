// A process that does something to itself while a thread of it compiles.
//
// compile_worker MODULE KIND ACTION MS
//
// Exit codes: 7 as it should be, 77 no such compiler here, anything else a
// failure (1: a compile failed; 3: a forked child failed).
#include <dlfcn.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/support/compile/stretched_locks.hpp"

namespace {

using CompileOnce = int(const char* kind);

constexpr int kRight = 7;
constexpr int kAbsent = 77;
constexpr unsigned kLongestSeconds = 60;

struct Job {
  void* library = nullptr;
  CompileOnce* compile_once = nullptr;
  const char* kind = nullptr;
  useconds_t pause = 0;
};

std::atomic<int> failure = 0;

std::thread compile_for_ever(const Job& job) {
  return std::thread([job] {
    while (failure == 0) failure = job.compile_once(job.kind);
  });
}

/// What the compiling thread has met so far.
int verdict() { return failure == 0 ? kRight : failure.load(); }

int return_from_main(const Job& job) {
  compile_for_ever(job).detach();
  usleep(job.pause);
  return verdict();
}

int call_exit(const Job& job) {
  compile_for_ever(job).detach();
  usleep(job.pause);
  std::exit(verdict());
}

int close_library(const Job& job) {
  std::atomic<int> result = -1;
  std::thread compiling([&] { result = job.compile_once(job.kind); });
  usleep(job.pause);
  dlclose(job.library);
  compiling.join();
  return result == 0 ? kRight : 1;
}

int fork_children(const Job& job) {
  constexpr int kChildren = 5;
  compile_for_ever(job).detach();
  for (int i = 0; i < kChildren; ++i) {
    usleep(job.pause + 7000u * static_cast<useconds_t>(i));
    const pid_t child = fork();
    if (child == 0) {
      alarm(kLongestSeconds / 2);
      _exit(job.compile_once(job.kind));
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child) return 3;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return 3;
  }
  _exit(verdict());
}

/// While the compiling thread is within a lock, or makes something for the
/// first time.
int fork_amid_locks(const Job& job) {
  constexpr int kLongMilliseconds = 25;
  constexpr int kTimes = 40;
  logpjit::testing::stretch_locks(kLongMilliseconds, kTimes);
  return fork_children(job);
}

void do_nothing(int) {}

/// A timer that interrupts every system call, as profilers have.
int be_interrupted(const Job& job) {
  struct sigaction action {};
  action.sa_handler = do_nothing;  // without SA_RESTART
  sigaction(SIGPROF, &action, nullptr);
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 2000}, {0, 2000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  return job.compile_once(job.kind) == 0 ? kRight : 1;
}

/// Children reaped by the system, broken pipes deadly, signals blocked.
int have_odd_signals(const Job& job) {
  signal(SIGCHLD, SIG_IGN);
  signal(SIGPIPE, SIG_DFL);
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  return job.compile_once(job.kind) == 0 ? kRight : 1;
}

constexpr struct {
  const char* name;
  int (*run)(const Job& job);
} kActions[] = {
    {"return", return_from_main},  {"exit", call_exit},
    {"dlclose", close_library},    {"fork", fork_children},
    {"locks", fork_amid_locks},    {"timer", be_interrupted},
    {"signals", have_odd_signals},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  alarm(kLongestSeconds);
  Job job;
  job.library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (job.library == nullptr) return 4;
  job.compile_once =
      reinterpret_cast<CompileOnce*>(dlsym(job.library, "compile_once"));
  job.kind = argv[2];
  job.pause = static_cast<useconds_t>(std::atoi(argv[4])) * 1000u;
  // Every other test begins with a compiler that is in use already.
  if (std::atoi(argv[4]) % 2 == 0) {
    const int first = job.compile_once(job.kind);
    if (first != 0) return first;
  }
  for (const auto& action : kActions) {
    if (std::strcmp(action.name, argv[3]) == 0) {
      const int code = action.run(job);
      return code == 1 && job.compile_once(job.kind) == kAbsent ? kAbsent
                                                                : code;
    }
  }
  return 2;
}
