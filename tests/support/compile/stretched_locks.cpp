// Once asked to, locks that threads other than the first take stay taken for a
// while, as do the guards of static objects they are first to reach: a fork
// meanwhile, a matter of luck otherwise, is certain.
#include "tests/support/compile/stretched_locks.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace logpjit::testing {
namespace {

std::atomic<long> stretch_ns = 0;
std::atomic<int> stretches_left = 0;
thread_local bool stretching = false;

void stretch() {
  const long pause = stretch_ns.load(std::memory_order_relaxed);
  if (pause == 0 || stretching || getpid() == gettid()) return;
  if (stretches_left.fetch_sub(1, std::memory_order_relaxed) <= 0) return;
  stretching = true;
  const timespec time{0, pause};
  nanosleep(&time, nullptr);
  stretching = false;
}

/// Kept in a plain atomic: a static object would have a guard of its own.
template <typename Function>
Function* real_function(std::atomic<Function*>& kept, const char* name) {
  Function* found = kept.load(std::memory_order_relaxed);
  if (found == nullptr) {
    found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
    kept.store(found, std::memory_order_relaxed);
  }
  return found;
}

}  // namespace

void stretch_locks(int milliseconds, int times) {
  stretches_left = times;
  stretch_ns = milliseconds * 1000000L;
}

}  // namespace logpjit::testing

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

// Found before those of the C and C++ libraries, by those libraries too.
#pragma GCC visibility push(default)
extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static std::atomic<int (*)(pthread_mutex_t*)> real = nullptr;
  const int result =
      logpjit::testing::real_function(real, "pthread_mutex_lock")(mutex);
  logpjit::testing::stretch();
  return result;
}

int pthread_once(pthread_once_t* control, void (*work)()) {
  static std::atomic<int (*)(pthread_once_t*, void (*)())> real = nullptr;
  thread_local void (*wanted)() = nullptr;
  wanted = work;
  const auto once = logpjit::testing::real_function(real, "pthread_once");
  return once(control, [] {
    auto* const mine = wanted;
    logpjit::testing::stretch();
    mine();
  });
}

int __cxa_guard_acquire(long long* guard) noexcept {
  static std::atomic<int (*)(long long*)> real = nullptr;
  const int mine =
      logpjit::testing::real_function(real, "__cxa_guard_acquire")(guard);
  if (mine != 0) logpjit::testing::stretch();
  return mine;
}

}  // extern "C"
#pragma GCC visibility pop

#endif
