// The register of fork-safe mutexes and the fork handlers that walk it.
#include "cache/fork_safe_mutex.hpp"

#include <pthread.h>

#include <algorithm>
#include <vector>

namespace logpjit::cache {
namespace {

struct Register {
  std::mutex guard;
  std::vector<ForkSafeMutex*> mutexes;
  std::atomic<std::uint64_t> generation{0};
};

void before_fork();
void after_fork();
void after_fork_in_child();

// Never destroyed: fork handlers and late destructors may still come. Whoever
// asks first, for a mutex or for the generation, installs the handlers; the
// latest is this file's loading, lest a fork finds them half installed.
Register& the_register() {
  static auto* const instance = [] {
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
    return new Register;
  }();
  return *instance;
}

[[maybe_unused]] const Register& made_at_load = the_register();

void before_fork() {
  the_register().guard.lock();
  for (ForkSafeMutex* mutex : the_register().mutexes) mutex->lock();
}

void after_fork() {
  for (ForkSafeMutex* mutex : the_register().mutexes) mutex->unlock();
  the_register().guard.unlock();
}

void after_fork_in_child() {
  ++the_register().generation;
  after_fork();
}

}  // namespace

ForkSafeMutex::ForkSafeMutex() {
  const std::lock_guard lock(the_register().guard);
  the_register().mutexes.push_back(this);
}

ForkSafeMutex::~ForkSafeMutex() {
  const std::lock_guard lock(the_register().guard);
  std::erase(the_register().mutexes, this);
}

std::uint64_t fork_generation() { return the_register().generation; }

const std::atomic<std::uint64_t>& fork_counter() {
  return the_register().generation;
}

}  // namespace logpjit::cache
