// Opens NVML and asks it for a GPU's clock and what holds it back.
#include "runtime/cuda/nvml.hpp"

#include <optional>

#include "logpjit/error.hpp"
#include "runtime/compile_gate.hpp"
#include "runtime/dynamic_library.hpp"

struct nvmlDevice_st;

namespace logpjit::runtime::cuda {
namespace {

constexpr int kSuccess = 0;          // NVML_SUCCESS
constexpr int kProcessorsClock = 1;  // NVML_CLOCK_SM

/// Bits of nvmlClocksThrottleReasons, worst first. Clocks that somebody set are
/// none of them: that GPU is as fast as it is to be.
struct Reason {
  unsigned long long bits;
  const char* text;
};
constexpr unsigned long long kSetByUser = 0x2;
constexpr Reason kReasons[] = {{0x20 | 0x40, "the temperature"},
                               {0x80, "the power brake"},
                               {0x8, "a hardware slowdown"},
                               {0x4, "the power cap"}};

struct Functions {
#define LOGPJIT_NVML(name, symbol, arguments) int(*name) arguments = nullptr;
#include "runtime/cuda/nvml_functions.inc"
#undef LOGPJIT_NVML
};

/// Nothing when it is not to be found, or too old.
std::optional<Functions> open_nvml(const std::filesystem::path& folder) {
  try {
    const DynamicLibrary library =
        DynamicLibrary::open({.what = "NVML",
                              .explicit_file = {},
                              .option = {},
                              .names = {"libnvidia-ml.so.1"},
                              .folders = {folder}});
    Functions nvml;
#define LOGPJIT_NVML(name, symbol, arguments)                            \
  nvml.name = reinterpret_cast<int(*) arguments>(library.find(#symbol)); \
  if (nvml.name == nullptr) return std::nullopt;
#include "runtime/cuda/nvml_functions.inc"
#undef LOGPJIT_NVML
    return nvml;
  } catch (const Error&) {
    return std::nullopt;
  }
}

class NvmlMeter final : public ClockMeter {
 public:
  /// NVML counts how often it was initialised.
  NvmlMeter(const Functions& nvml, const std::string& bus_id) : nvml_(nvml) {
    is_ready_ = nvml_.get_handle(bus_id.c_str(), &device_) == kSuccess &&
                nvml_.get_highest_clock(device_, kProcessorsClock, &highest_) ==
                    kSuccess &&
                highest_ > 0;
  }
  ~NvmlMeter() override { nvml_.shutdown(); }
  NvmlMeter(const NvmlMeter&) = delete;
  NvmlMeter& operator=(const NvmlMeter&) = delete;

  bool is_ready() const { return is_ready_; }

  ClockState read() override {
    unsigned clock = 0;
    unsigned long long reasons = 0;
    if (nvml_.get_clock(device_, kProcessorsClock, &clock) != kSuccess ||
        nvml_.get_reasons(device_, &reasons) != kSuccess) {
      return {};
    }
    ClockState state{.share = static_cast<double>(clock) / highest_};
    if ((reasons & kSetByUser) != 0) return state;
    for (const Reason& reason : kReasons) {
      if ((reasons & reason.bits) == 0) continue;
      state.held_by = reason.text;
      break;
    }
    return state;
  }

 private:
  Functions nvml_;
  nvmlDevice_st* device_ = nullptr;
  unsigned highest_ = 0;  ///< MHz
  bool is_ready_ = false;
};

}  // namespace

std::unique_ptr<ClockMeter> make_nvml_meter(
    const std::string& bus_id, const std::filesystem::path& folder) {
  const CompileGate gate;
  const std::optional<Functions> nvml = open_nvml(folder);
  if (!nvml || nvml->init() != kSuccess) return nullptr;
  auto meter = std::make_unique<NvmlMeter>(*nvml, bus_id);
  return meter->is_ready() ? std::move(meter) : nullptr;
}

}  // namespace logpjit::runtime::cuda
