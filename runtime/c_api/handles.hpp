// What the opaque handles of the C interface hold.
#pragma once

#include <string>

#include "cache/fork_safe_mutex.hpp"
#include "logpjit/logpjit.h"
#include "logpjit/runtime.hpp"

struct logpjit_runtime {
  explicit logpjit_runtime(const logpjit::Options& options)
      : runtime(options) {}

  logpjit::Runtime runtime;
  // Texts handed out, made with the runtime.
  std::string directory;
  bool on_disk = false;
  std::string read_only_caches;
  logpjit::cache::ForkSafeMutex compiler_mutex;
  std::string compiler;  ///< set once, under the mutex
};

struct logpjit_kernel {
  logpjit::Kernel kernel;
};
