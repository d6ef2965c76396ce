// NVML's functions as far as logpjit calls them, about a GPU that is none.
#include "tests/support/fake_nvml/fake_nvml.hpp"

#include <string_view>

struct nvmlDevice_st {};

namespace {

constexpr int kNotFound = 6;  // NVML_ERROR_NOT_FOUND

logpjit::testing::FakeNvml& state() {
  static auto* const instance = new logpjit::testing::FakeNvml;
  return *instance;
}

int answer(const char* symbol) {
  const auto found = state().answers.find(symbol);
  return found == state().answers.end() ? 0 : found->second;
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE logpjit::testing::FakeNvml* logpjit_fake_nvml() { return &state(); }

FAKE int nvmlInit_v2() {
  if (const int code = answer("nvmlInit_v2")) return code;
  ++state().users;
  return 0;
}
FAKE int nvmlShutdown() {
  --state().users;
  return 0;
}
FAKE int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id,
                                          nvmlDevice_st** device) {
  static nvmlDevice_st instance;
  *device = &instance;
  return std::string_view(bus_id) == "0000:00:00.0" ? 0 : kNotFound;
}
FAKE int nvmlDeviceGetClockInfo(nvmlDevice_st*, int, unsigned* mhz) {
  *mhz = state().clock;
  return answer("nvmlDeviceGetClockInfo");
}
FAKE int nvmlDeviceGetMaxClockInfo(nvmlDevice_st*, int, unsigned* mhz) {
  *mhz = state().highest;
  return answer("nvmlDeviceGetMaxClockInfo");
}
FAKE int nvmlDeviceGetCurrentClocksThrottleReasons(
    nvmlDevice_st*, unsigned long long* reasons) {
  *reasons = state().reasons;
  return answer("nvmlDeviceGetCurrentClocksThrottleReasons");
}
