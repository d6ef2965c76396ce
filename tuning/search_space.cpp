// Enumerating tunables, and rules of what is worth a try.
#include "tuning/search_space.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "generator/generate.hpp"
#include "logpjit/error.hpp"
#include "runtime/config_rules.hpp"
#include "runtime/launch_table.hpp"
#include "templates/common/layout.cuh"

namespace logpjit::tuning {
namespace {

using runtime::TunedShape;

constexpr int kRegistersPerMultiprocessor = 65536;
constexpr int kMostRegisters = 255;
constexpr int kFewestRegisters = 32;
/// Addresses, counters and a state beside the words in flight.
constexpr int kOtherRegisters = 20;
constexpr int kRegistersPerWord = 4;
constexpr int kWordBytes = 16;
/// Bandwidth times latency of a multiprocessor's share, rounded down.
constexpr int kFewestBytes = 8 << 10;
constexpr int kSmallestBlock = 128;
/// What a parameter that only one of two configurations has counts for.
constexpr double kMissing = 3;

int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<int> values_of(const generator::Domain& domain) {
  std::vector<int> values;
  values.reserve(domain.values.size());
  for (const std::string& text : domain.values) values.push_back(number(text));
  if (!domain.values.empty()) return values;
  for (std::int64_t value = domain.low; value <= domain.high; ++value) {
    values.push_back(static_cast<int>(value));
  }
  return values;
}

/// All combinations of the kernel's tunables.
std::vector<LaunchConfig> combinations(
    const generator::KernelManifest& kernel) {
  std::vector<LaunchConfig> all(1);
  for (const generator::TemplateParameter& parameter : kernel.parameters) {
    if (parameter.role != generator::ParameterRole::kTunable) continue;
    std::vector<LaunchConfig> longer;
    for (const int value : values_of(parameter.domain)) {
      for (LaunchConfig config : all) {
        config.set(parameter.key(), value);
        longer.push_back(std::move(config));
      }
    }
    all = std::move(longer);
  }
  return all;
}

bool serves(const generator::KernelManifest& kernel, const KernelSpec& spec,
            const LaunchConfig& config) {
  try {
    return generator::kernel_name(spec, config) == kernel.name;
  } catch (const Error&) {
    return false;
  }
}

/// Of every kernel that serves the specification under its own tunables.
std::vector<LaunchConfig> all_configs(const KernelSpec& spec) {
  std::vector<LaunchConfig> configs;
  for (const auto& file : generator::embedded_manifest().templates) {
    for (const generator::KernelManifest& kernel : file.kernels) {
      std::vector<LaunchConfig> own = combinations(kernel);
      if (own.empty() || !serves(kernel, spec, own.front())) continue;
      std::move(own.begin(), own.end(), std::back_inserter(configs));
    }
  }
  return configs;
}

int threads_per_multiprocessor(const DeviceInfo& device) {
  if (device.major == 7) return 1024;
  const bool consumer =
      device.major == 12 || (device.major == 8 && device.minor > 0);
  return consumer ? 1536 : 2048;
}

/// Registers that a compiler may give a thread: multiples of 8.
int register_limit(int threads) {
  constexpr int kUnit = 8;
  return std::min(kMostRegisters, kRegistersPerMultiprocessor / threads) /
         kUnit * kUnit;
}

std::optional<SearchRule> broken_on_gpu(const TunedShape& shape,
                                        const DeviceInfo& device,
                                        const LaunchConfig& config) {
  const int block =
      static_cast<int>(runtime::shape_per_row(shape.spec, config).launch.block);
  // Without a device nobody knows how many there are.
  if (config.find("split") && device.multiprocessors > 0 &&
      shape.rows > std::int64_t{2} * device.multiprocessors) {
    return SearchRule::kManyRows;
  }
  const auto blocks = config.find("min_blocks");
  if (!blocks) return std::nullopt;
  const int threads = block * *blocks;
  if (threads > threads_per_multiprocessor(device)) {
    return SearchRule::kResidency;
  }
  const int flight = config.find("flight").value_or(1);
  const int registers = register_limit(threads);
  if (registers < kFewestRegisters ||
      registers < kRegistersPerWord * flight + kOtherRegisters) {
    return SearchRule::kRegisters;
  }
  if (threads * flight * kWordBytes < kFewestBytes) {
    return SearchRule::kFewBytes;
  }
  if (threads + block <= threads_per_multiprocessor(device) &&
      register_limit(threads + block) == registers) {
    // The same code as with one block more, if that is a choice at all.
    LaunchConfig more = config;
    more.set("min_blocks", *blocks + 1);
    if (!runtime::broken_rule(shape.spec, more, device)) {
      return SearchRule::kNoEffect;
    }
  }
  return std::nullopt;
}

std::optional<SearchRule> broken_on_cpu(const LaunchConfig& fallback,
                                        const LaunchConfig& config) {
  if (config.find("split")) return SearchRule::kManyRows;
  // Blocks a multiprocessor are a hint to a register allocator it has not.
  return config.find("min_blocks") == fallback.find("min_blocks")
             ? std::nullopt
             : std::optional(SearchRule::kNoEffect);
}

std::optional<SearchRule> broken_rule(const TunedShape& shape,
                                      const DeviceInfo& device,
                                      const LaunchConfig& fallback,
                                      const LaunchConfig& config) {
  const int groups = device::group_count(shape.spec.vocab);
  const int block = config.find("block").value_or(0);
  if (block > kSmallestBlock && block / 2 >= groups) {
    return SearchRule::kIdleThreads;
  }
  return device.id.kind == DeviceKind::kCpu
             ? broken_on_cpu(fallback, config)
             : broken_on_gpu(shape, device, config);
}

}  // namespace

std::string_view name(SearchRule rule) {
  switch (rule) {
    case SearchRule::kResidency:
      return "residency";
    case SearchRule::kRegisters:
      return "registers";
    case SearchRule::kFewBytes:
      return "few_bytes";
    case SearchRule::kIdleThreads:
      return "idle_threads";
    case SearchRule::kManyRows:
      return "many_rows";
    case SearchRule::kNoEffect:
      return "no_effect";
  }
  return "";
}

LaunchConfig default_config(const TunedShape& shape, const DeviceInfo& device) {
  const auto choices = runtime::default_choices(shape.spec, device);
  for (const runtime::RowChoice& choice : choices) {
    if (shape.rows <= choice.max_rows) return choice.config;
  }
  return choices.back().config;
}

SearchSpace search_space(const TunedShape& shape, const DeviceInfo& device) {
  const LaunchConfig fallback = default_config(shape, device);
  SearchSpace space{.configs = {fallback}, .rejected = {}};
  for (LaunchConfig& config : all_configs(shape.spec)) {
    if (config == fallback) continue;
    if (const auto rule = runtime::broken_rule(shape.spec, config, device)) {
      ++space.rejected[std::string(runtime::name(*rule))];
    } else if (const auto hopeless =
                   broken_rule(shape, device, fallback, config)) {
      ++space.rejected[std::string(name(*hopeless))];
    } else {
      space.configs.push_back(std::move(config));
    }
  }
  std::stable_sort(space.configs.begin() + 1, space.configs.end(),
                   [&](const LaunchConfig& a, const LaunchConfig& b) {
                     return distance(a, fallback) < distance(b, fallback);
                   });
  return space;
}

double distance(const LaunchConfig& a, const LaunchConfig& b) {
  double sum = 0;
  for (const auto& [key, value] : a.values()) {
    const auto other = b.find(key);
    sum += other ? std::fabs(std::log2(static_cast<double>(value)) -
                             std::log2(static_cast<double>(*other)))
                 : kMissing;
  }
  for (const auto& [key, value] : b.values()) {
    if (!a.find(key)) sum += kMissing;
  }
  return sum;
}

std::vector<LaunchConfig> neighbours(std::span<const LaunchConfig> configs,
                                     const LaunchConfig& center,
                                     std::span<const LaunchConfig> known,
                                     std::size_t count) {
  std::vector<LaunchConfig> near;
  for (const LaunchConfig& config : configs) {
    if (std::find(known.begin(), known.end(), config) == known.end()) {
      near.push_back(config);
    }
  }
  std::stable_sort(near.begin(), near.end(),
                   [&](const LaunchConfig& a, const LaunchConfig& b) {
                     return distance(a, center) < distance(b, center);
                   });
  near.resize(std::min(near.size(), count));
  return near;
}

std::vector<LaunchConfig> spread_out(std::span<const LaunchConfig> configs,
                                     std::size_t count) {
  if (configs.empty() || count == 0) return {};
  std::vector<LaunchConfig> chosen{configs.front()};
  const auto near =
      neighbours(configs, chosen.front(), chosen, (count - 1) / 2);
  chosen.insert(chosen.end(), near.begin(), near.end());
  std::vector<double> gaps(configs.size());
  for (std::size_t i = 0; i < configs.size(); ++i) {
    gaps[i] = distance(configs[i], chosen.front());
    for (const auto& each : chosen) {
      gaps[i] = std::min(gaps[i], distance(configs[i], each));
    }
  }
  while (chosen.size() < std::min(count, configs.size())) {
    const auto farthest = static_cast<std::size_t>(
        std::max_element(gaps.begin(), gaps.end()) - gaps.begin());
    chosen.push_back(configs[farthest]);
    for (std::size_t i = 0; i < configs.size(); ++i) {
      gaps[i] = std::min(gaps[i], distance(configs[i], chosen.back()));
    }
  }
  return chosen;
}

}  // namespace logpjit::tuning
