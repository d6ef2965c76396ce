// Counting who is inside, and the handlers of fork and exit that wait for them.
#include "runtime/compile_gate.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "cache/fork_safe_mutex.hpp"
#include "logpjit/error.hpp"

namespace logpjit::runtime {
namespace {

/// Never destroyed: handlers and late threads may still come. Everything polls:
/// a condition variable would keep waiters that a forked child does not have.
struct Gate {
  std::mutex mutex;
  int inside = 0;          // gates held, by all threads
  int waiting = 0;         // threads that wait for everybody to leave
  bool used = false;       // somebody was inside
  bool exiting = false;    // for good
  std::thread::id exiter;  // who runs the exit handlers
};

thread_local int held_here = 0;

Gate& gate();

void pause_a_moment() {
  std::this_thread::sleep_for(std::chrono::microseconds(200));
}

/// Returns with the mutex held and nobody else inside, or a minute later.
void close_gate() {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::minutes(1);
  for (;; pause_a_moment()) {
    gate().mutex.lock();
    if (gate().inside == held_here) return;
    if (std::chrono::steady_clock::now() >= deadline) return;
    gate().mutex.unlock();
  }
}

/// Holds newcomers back until everybody else has left, and returns with the
/// mutex held.
void wait_for_all() {
  {
    const std::lock_guard lock(gate().mutex);
    ++gate().waiting;
  }
  close_gate();
}

void let_in_again() {
  --gate().waiting;
  gate().mutex.unlock();
}

void after_fork_in_child() {
  gate().waiting = 0;
  gate().inside = held_here;
  gate().mutex.unlock();
}

void before_exit() {
  {
    const std::lock_guard lock(gate().mutex);
    if (gate().exiting) return;
    gate().exiting = true;
    gate().exiter = std::this_thread::get_id();
  }
  close_gate();
  gate().mutex.unlock();
}

/// Takes one more reference to the library that this code is in, if it is one.
void stay_mapped() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&stay_mapped), &info) == 0) return;
  if (info.dli_fname == nullptr) return;
  dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

/// Made when this code is loaded: in a thread's first compile, a fork would
/// find it half made, and no handlers. Handlers run latest first: this one
/// before those of fork-safe mutexes, which who is inside may still want.
Gate& gate() {
  static auto* const instance = [] {
    cache::fork_generation();
    pthread_atfork(wait_for_all, let_in_again, after_fork_in_child);
    return new Gate;
  }();
  return *instance;
}

[[maybe_unused]] const Gate& made_at_load = gate();

/// exit() destroys the thread's own objects before it runs any handler, in the
/// main thread this one: a library that is in its first use makes globals after
/// every handler that could have been registered. The main thread may also end
/// alone, so others are let in again.
struct EndOfMainThread {
  ~EndOfMainThread() {
    wait_for_all();
    let_in_again();
  }
};

[[maybe_unused]] const bool main_thread_is_watched = [] {
  if (getpid() != gettid()) return false;
  thread_local const EndOfMainThread end;
  static_cast<void>(end);
  return true;
}();

/// True when this thread has been let in.
bool enter() {
  const std::lock_guard lock(gate().mutex);
  if (gate().exiting && gate().exiter == std::this_thread::get_id()) {
    throw Error(ErrorCode::kUnavailable,
                "the process is ending: nothing is compiled any more; compile "
                "before main returns or exit is called");
  }
  // Who is inside already goes on: the others wait for it.
  if (held_here == 0 && (gate().exiting || gate().waiting > 0)) return false;
  if (!gate().used) {
    gate().used = true;
    stay_mapped();
    CompileGate::wait_first_at_exit();
  }
  ++gate().inside;
  ++held_here;
  return true;
}

}  // namespace

CompileGate::CompileGate() {
  while (!enter()) pause_a_moment();
}

void CompileGate::wait_first_at_exit() { std::atexit(before_exit); }

CompileGate::~CompileGate() {
  const std::lock_guard lock(gate().mutex);
  --gate().inside;
  --held_here;
}

}  // namespace logpjit::runtime
