// Which measured configuration serves which call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/config_store.hpp"
#include "logpjit/device.hpp"
#include "logpjit/kernel_spec.hpp"
#include "logpjit/launch_config.hpp"
#include "runtime/launch_table.hpp"

namespace logpjit::runtime {

/// What was tuned: a specification and a number of rows. Its text names a
/// record of the config store: KernelSpec::text(), then " n=" and the rows.
struct TunedShape {
  KernelSpec spec;
  std::int64_t rows = 0;

  std::string text() const;
  /// Nothing when it is no such text, or of another family.
  static std::optional<TunedShape> parse(std::string_view text);
  friend bool operator==(const TunedShape&, const TunedShape&) = default;
};

/// A measured choice, ready to be compared.
struct TunedConfig {
  TunedShape shape{};
  LaunchConfig config{};
  std::map<std::string, std::string> device;
  /// What the kernel was generated from when it was measured; see
  /// `template_digest`.
  std::string templates;
  bool shipped = false;  ///< came with the library
};

/// Records that can be understood; the others are left out.
std::vector<TunedConfig> read_records(
    std::span<const cache::ConfigRecord> records, bool shipped);

/// Digest of the template that serves `spec` under `config`, as records name it
/// in `measured_with` under "templates".
std::string template_digest(const KernelSpec& spec, const LaunchConfig& config);

/// |log2 of the ratio| of two sizes, in 1/65536 octaves.
std::int64_t log_distance(std::int64_t a, std::int64_t b);

/// Configurations by row count for one specification on one device, ascending,
/// the last for any number; `defaults` serve where no record is near. In order:
/// exact (same specification, device and templates), nearest (rows, vocabulary
/// or templates differ), other device (same architecture); within each, own
/// records before shipped ones. A record serves rows and vocabularies within
/// two octaves of its own, a shipped one vocabularies within a sixteenth;
/// beyond 64 rows per multiprocessor more rows are all alike. Records that
/// break a rule on this device are passed over.
std::vector<RowChoice> tuned_choices(const KernelSpec& spec,
                                     const DeviceInfo& device,
                                     std::span<const TunedConfig> records,
                                     std::vector<RowChoice> defaults);

/// What `tuned_choices` may choose from on any device of this architecture,
/// each once.
std::vector<LaunchConfig> measured_configs(
    const KernelSpec& spec, const DeviceInfo& device,
    std::span<const TunedConfig> records);

}  // namespace logpjit::runtime
