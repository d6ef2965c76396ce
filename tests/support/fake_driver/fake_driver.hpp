// What tests see of the driver that pretends.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace logpjit::testing {

/// A kernel's arrival in a context, or its launch there.
struct FakeEvent {
  int device = 0;
  std::string image;  ///< the first bytes of it
};

/// State of libfake_driver.so; `logpjit_fake_driver()` gives the one there is.
/// Images: those that begin with "sm_<major><minor>" are good on a device of
/// that compute capability and refused with 209 elsewhere; "FAKE:<code>" is
/// refused with that code; anything else with 200. As in the real driver, the
/// load itself succeeds and the answer comes when the kernel is asked for.
struct FakeDriver {
  virtual ~FakeDriver() = default;

  std::mutex mutex;
  std::vector<int> devices{90};  ///< compute capabilities
  /// Answers of the next call of each symbol instead of doing it.
  std::map<std::string, int> answers;
  /// Every call of a context answers this, as after a broken context or a
  /// shutdown; 0 = not.
  int all_answer = 0;

  std::vector<FakeEvent> loads;
  std::vector<FakeEvent> launches;
  int retained = 0;  ///< primary contexts taken less those given back

  /// As cudaDeviceReset: handles stay current, calls answer 709.
  virtual void reset_context(int device);
  /// The device of this thread's current context, -1 without one.
  virtual int current_device();
  /// Makes that device's context current in this thread, -1 for none.
  virtual void set_current(int device);
  /// Back to the beginning, for the next test.
  virtual void forget();
};

using FakeDriverAccess = FakeDriver*();

}  // namespace logpjit::testing
