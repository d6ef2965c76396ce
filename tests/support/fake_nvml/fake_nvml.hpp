// What tests see of the NVML that pretends.
#pragma once

#include <map>
#include <string>

namespace logpjit::testing {

/// State of the fake libnvidia-ml.so.1; `logpjit_fake_nvml()` gives the one
/// there is. It knows one GPU, in bus slot 0.
struct FakeNvml {
  unsigned clock = 1980;
  unsigned highest = 1980;
  unsigned long long reasons = 0;
  /// What calls of a symbol answer instead; success without.
  std::map<std::string, int> answers;
  int users = 0;  ///< initialised less shut down
};

using FakeNvmlAccess = FakeNvml*();

}  // namespace logpjit::testing
