// What must not happen while a thread is inside a compiler or opens the driver:
// fork, the end of the process, unloading.
#pragma once

namespace logpjit::runtime {

/// Held by a thread while it is inside a compiler library or starts the driver,
/// or between opening and passing on descriptors that a forked process must not
/// keep. Meanwhile
/// - fork() in other threads waits: a child could never take the locks that
///   this thread holds in the library;
/// - exit() and the end of main wait: the library's globals would be destroyed
///   under it. From then on nobody gets in: other threads wait for the end of
///   the process, the exiting one gets Error{kUnavailable};
/// - the code of this library stays mapped for good once a gate was held, so
///   that dlclose() takes nothing from under a compile.
/// A thread may hold several. A child of fork() begins with its own only. Both
/// waits end after a minute, in case a compiler never comes back.
class CompileGate {
 public:
  CompileGate();
  ~CompileGate();
  CompileGate(const CompileGate&) = delete;
  CompileGate& operator=(const CompileGate&) = delete;

  /// Exit handlers run latest first: called after a library was opened or used
  /// for the first time, so that exit waits before the globals made until now
  /// are destroyed.
  static void wait_first_at_exit();
};

}  // namespace logpjit::runtime
