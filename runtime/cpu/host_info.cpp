// Reads /proc and the C library's notion of caches and processors.
#include "runtime/cpu/host_info.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>
#include <thread>

namespace logpjit::runtime {
namespace {

// As on compute capability 9.0, so that the same configurations fit.
constexpr std::int64_t kSharedBytesPerBlock = 227 << 10;
constexpr std::int64_t kSharedBytesPerMultiprocessor = 228 << 10;
[[maybe_unused]] constexpr const char* kWideTarget = "x86_64-v3-linux";

/// What follows "key :" in a file of such lines; empty if absent.
std::string read_value(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t at = line.find_first_not_of(" \t:", key.size());
    return at == std::string::npos ? std::string() : line.substr(at);
  }
  return {};
}

std::int64_t read_kilobytes(std::string_view key) {
  const std::string text = read_value("/proc/meminfo", key);
  std::int64_t kilobytes = 0;
  std::from_chars(text.data(), text.data() + text.size(), kilobytes);
  return kilobytes << 10;
}

std::string machine() {
  utsname names{};
  uname(&names);
  return names.machine;
}

}  // namespace

int available_threads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

std::string host_target() {
#if defined(__x86_64__)
  // Fused multiply-adds in hardware: elsewhere each is a call.
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return kWideTarget;
  }
#endif
  return fmt::format("{}-linux", machine());
}

std::vector<std::string> host_targets() {
  std::vector<std::string> targets{fmt::format("{}-linux", machine())};
#if defined(__x86_64__)
  targets.emplace_back(kWideTarget);
#endif
  return targets;
}

DeviceInfo describe_host(int threads) {
  DeviceInfo info;
  info.id = {DeviceKind::kCpu, 0};
  info.name = read_value("/proc/cpuinfo", "model name");
  if (info.name.empty()) info.name = machine();
  info.software = fmt::format("fiber executor, {} threads", threads);
  info.multiprocessors = threads;
  info.l2_bytes = std::max(sysconf(_SC_LEVEL2_CACHE_SIZE), 0L);
  info.shared_bytes_per_block = kSharedBytesPerBlock;
  info.shared_bytes_per_multiprocessor = kSharedBytesPerMultiprocessor;
  info.memory_bytes = read_kilobytes("MemTotal");
  return info;
}

std::size_t available_memory() {
  return static_cast<std::size_t>(read_kilobytes("MemAvailable"));
}

}  // namespace logpjit::runtime
