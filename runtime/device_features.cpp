// Features that decide, as text.
#include "runtime/device_features.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <array>
#include <cmath>
#include <string_view>

namespace logpjit::runtime {
namespace {

constexpr std::int64_t kKibi = 1024;

/// Quarter octaves, so that memory clocks of one product fall together and
/// those of the next (same compute capability, other memory) do not.
std::string bandwidth_step(std::int64_t gb_per_s) {
  if (gb_per_s <= 0) return "unknown";
  return fmt::format("{}",
                     std::lround(4 * std::log2(static_cast<double>(gb_per_s))));
}

std::string machine() {
  utsname names{};
  uname(&names);
  return names.machine;
}

}  // namespace

std::map<std::string, std::string> device_features(const DeviceInfo& device) {
  const auto number = [](std::int64_t value) {
    return fmt::format("{}", value);
  };
  if (device.id.kind == DeviceKind::kCpu) {
    return {{"kind", "cpu"},
            {"machine", machine()},
            {"threads", number(device.multiprocessors)}};
  }
  return {{"kind", "cuda"},
          {"cc", fmt::format("{}.{}", device.major, device.minor)},
          {"sms", number(device.multiprocessors)},
          {"l2_mib", number(device.l2_bytes / (kKibi * kKibi))},
          {"shared_kib", number(device.shared_bytes_per_block / kKibi)},
          {"bandwidth", bandwidth_step(device.memory_gb_per_s)}};
}

bool same_architecture(const std::map<std::string, std::string>& a,
                       const std::map<std::string, std::string>& b) {
  constexpr std::array<std::string_view, 3> kDeciding{"kind", "cc", "machine"};
  for (const std::string_view key : kDeciding) {
    const auto in_a = a.find(std::string(key));
    const auto in_b = b.find(std::string(key));
    if ((in_a == a.end()) != (in_b == b.end())) return false;
    if (in_a != a.end() && in_a->second != in_b->second) return false;
  }
  return true;
}

}  // namespace logpjit::runtime
