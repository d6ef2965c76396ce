// The ladder from exact records to defaults, cut into ranges of rows.
#include "runtime/config_lookup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "cache/digest.hpp"
#include "generator/generate.hpp"
#include "generator/spec_text.hpp"
#include "logpjit/error.hpp"
#include "runtime/config_rules.hpp"
#include "runtime/device_features.hpp"

namespace logpjit::runtime {
namespace {

constexpr std::int64_t kOctave = 65536;
constexpr std::int64_t kReach = 2 * kOctave;
/// Of vocabularies shipped with the library: for others of that GPU its
/// defaults were measured, too.
constexpr std::int64_t kShippedReach = kOctave / 16;
constexpr std::int64_t kRowsPerUnit = 64;

/// Records of one rung that serve the specification: they differ in rows only.
struct Rung {
  ConfigSource source = ConfigSource::kDefault;
  std::int64_t distance = 0;  ///< of vocabularies
  std::vector<const TunedConfig*> records;
};

/// Whether the record is for this specification but for the vocabulary, near
/// enough, and can be launched here.
bool serves(const TunedConfig& record, const KernelSpec& spec,
            const DeviceInfo& device) {
  KernelSpec same = record.shape.spec;
  same.vocab = spec.vocab;
  return same.text() == spec.text() &&
         log_distance(record.shape.spec.vocab, spec.vocab) <=
             (record.shipped ? kShippedReach : kReach) &&
         !broken_rule(spec, record.config, device);
}

class Ladder {
 public:
  Ladder(const KernelSpec& spec, const DeviceInfo& device,
         std::span<const TunedConfig> records, std::vector<RowChoice> defaults);
  std::vector<RowChoice> choices() const;

 private:
  ConfigSource source_of(const TunedConfig& record) const;
  void add_rungs(std::span<const TunedConfig> records, ConfigSource source,
                 bool shipped);
  std::int64_t effective(std::int64_t rows) const {
    return std::min(rows, most_rows_);
  }
  std::set<std::int64_t> limits() const;
  const TunedConfig* exact(std::int64_t first, std::int64_t last) const;
  RowChoice choice(std::int64_t first, std::int64_t last) const;
  const RowChoice& default_for(std::int64_t rows) const;

  const KernelSpec& spec_;
  const DeviceInfo& device_;
  const std::map<std::string, std::string> features_;
  const std::int64_t most_rows_;
  std::vector<RowChoice> defaults_;
  std::vector<Rung> rungs_;
};

Ladder::Ladder(const KernelSpec& spec, const DeviceInfo& device,
               std::span<const TunedConfig> records,
               std::vector<RowChoice> defaults)
    : spec_(spec),
      device_(device),
      features_(device_features(device)),
      most_rows_(kRowsPerUnit * std::max(device.multiprocessors, 1)),
      defaults_(std::move(defaults)) {
  for (const ConfigSource source :
       {ConfigSource::kExact, ConfigSource::kNearest,
        ConfigSource::kOtherDevice}) {
    for (const bool shipped : {false, true}) {
      add_rungs(records, source, shipped);
    }
  }
}

ConfigSource Ladder::source_of(const TunedConfig& record) const {
  if (record.device != features_) {
    return same_architecture(record.device, features_)
               ? ConfigSource::kOtherDevice
               : ConfigSource::kDefault;
  }
  const bool exact = record.shape.spec.vocab == spec_.vocab &&
                     record.templates == template_digest(spec_, record.config);
  return exact ? ConfigSource::kExact : ConfigSource::kNearest;
}

/// One rung for each distance of vocabularies, the nearest first.
void Ladder::add_rungs(std::span<const TunedConfig> records,
                       ConfigSource source, bool shipped) {
  std::map<std::int64_t, Rung> by_distance;
  for (const TunedConfig& record : records) {
    if (record.shipped != shipped || !serves(record, spec_, device_) ||
        source_of(record) != source) {
      continue;
    }
    const std::int64_t distance =
        log_distance(record.shape.spec.vocab, spec_.vocab);
    Rung& rung = by_distance[distance];
    rung.source = source;
    rung.distance = distance;
    rung.records.push_back(&record);
  }
  for (auto& [distance, rung] : by_distance) {
    std::stable_sort(rung.records.begin(), rung.records.end(),
                     [](const TunedConfig* a, const TunedConfig* b) {
                       return a->shape.rows < b->shape.rows;
                     });
    rungs_.push_back(std::move(rung));
  }
}

/// Every row count after which another choice may be right.
std::set<std::int64_t> Ladder::limits() const {
  std::set<std::int64_t> limits;
  for (const RowChoice& choice : defaults_) limits.insert(choice.max_rows);
  for (const Rung& rung : rungs_) {
    std::int64_t previous = 0;
    for (const TunedConfig* record : rung.records) {
      const std::int64_t rows = effective(record->shape.rows);
      limits.insert((rows + 3) / 4 - 1);
      limits.insert(4 * rows);
      // The text says exact for the tuned row count alone.
      limits.insert(rows - 1);
      limits.insert(rows);
      if (previous > 0) {
        limits.insert(static_cast<std::int64_t>(std::sqrt(
            static_cast<double>(previous) * static_cast<double>(rows))));
      }
      previous = rows;
    }
  }
  limits.insert(most_rows_ - 1);
  limits.insert(INT64_MAX);
  limits.erase(limits.begin(), limits.lower_bound(1));
  return limits;
}

const RowChoice& Ladder::default_for(std::int64_t rows) const {
  for (const RowChoice& choice : defaults_) {
    if (rows <= choice.max_rows) return choice;
  }
  return defaults_.back();
}

/// The record that was measured for a row count from `first` to `last`.
const TunedConfig* Ladder::exact(std::int64_t first, std::int64_t last) const {
  for (const Rung& rung : rungs_) {
    if (rung.source != ConfigSource::kExact) continue;
    for (const TunedConfig* record : rung.records) {
      if (first <= record->shape.rows && record->shape.rows <= last) {
        return record;
      }
    }
  }
  return nullptr;
}

/// What serves `first` to `last` rows; all of them alike.
RowChoice Ladder::choice(std::int64_t first, std::int64_t last) const {
  const auto chosen = [&](const TunedConfig& record, ConfigSource source,
                          std::int64_t distance) {
    return RowChoice{.max_rows = last,
                     .config = record.config,
                     .source = source,
                     .distance = distance,
                     .shipped = record.shipped};
  };
  if (const TunedConfig* record = exact(first, last)) {
    return chosen(*record, ConfigSource::kExact, 0);
  }
  const std::int64_t rows = effective(last);
  for (const Rung& rung : rungs_) {
    const auto far = [&](const TunedConfig* record) {
      return log_distance(effective(record->shape.rows), rows);
    };
    const TunedConfig& best = **std::ranges::min_element(rung.records, {}, far);
    const std::int64_t distance = far(&best) + rung.distance;
    if (distance > kReach) continue;
    RowChoice made =
        chosen(best,
               rung.source == ConfigSource::kExact ? ConfigSource::kNearest
                                                   : rung.source,
               distance);
    // Where the default was best it is for other rows, too: theirs.
    if (made.config == default_for(best.shape.rows).config) {
      made.config = default_for(last).config;
    }
    return made;
  }
  return {.max_rows = last, .config = default_for(last).config};
}

std::vector<RowChoice> Ladder::choices() const {
  std::vector<RowChoice> choices;
  std::int64_t first = 1;
  for (const std::int64_t last : limits()) {
    const RowChoice next = choice(first, last);
    first = last == INT64_MAX ? last : last + 1;
    const bool same = !choices.empty() &&
                      choices.back().config == next.config &&
                      choices.back().source == next.source;
    if (same) {
      choices.back().max_rows = next.max_rows;
      choices.back().distance =
          std::max(choices.back().distance, next.distance);
    } else {
      choices.push_back(next);
    }
  }
  return choices;
}

}  // namespace

std::string TunedShape::text() const {
  return fmt::format("{} n={}", spec.text(), rows);
}

std::optional<TunedShape> TunedShape::parse(std::string_view text) {
  const std::size_t at = text.rfind(" n=");
  if (at == std::string_view::npos) return std::nullopt;
  const auto spec = generator::parse_spec_text(text.substr(0, at));
  std::int64_t rows = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + at + 3, end, rows);
  if (!spec || read.ec != std::errc{} || read.ptr != end || rows < 1) {
    return std::nullopt;
  }
  return TunedShape{*spec, rows};
}

std::vector<TunedConfig> read_records(
    std::span<const cache::ConfigRecord> records, bool shipped) {
  std::vector<TunedConfig> read;
  for (const cache::ConfigRecord& record : records) {
    const auto shape = TunedShape::parse(record.spec);
    if (!shape) continue;
    const auto templates = record.measured_with.find("templates");
    try {
      read.push_back({.shape = *shape,
                      .config = LaunchConfig::parse(record.config),
                      .device = record.device,
                      .templates = templates == record.measured_with.end()
                                       ? std::string()
                                       : templates->second,
                      .shipped = shipped});
    } catch (const Error&) {
      // A config that cannot be read serves nobody.
    }
  }
  return read;
}

std::string template_digest(const KernelSpec& spec,
                            const LaunchConfig& config) {
  const auto* made_from = generator::embedded_manifest().template_of(
      generator::kernel_name(spec, config));
  std::string digests;
  if (made_from != nullptr) {
    for (const auto& file : made_from->closure) digests += file.digest;
  }
  return cache::hex(cache::digest(digests));
}

std::int64_t log_distance(std::int64_t a, std::int64_t b) {
  const double ratio =
      std::log2(static_cast<double>(std::max<std::int64_t>(a, 1))) -
      std::log2(static_cast<double>(std::max<std::int64_t>(b, 1)));
  return std::llround(std::fabs(ratio) * static_cast<double>(kOctave));
}

std::vector<RowChoice> tuned_choices(const KernelSpec& spec,
                                     const DeviceInfo& device,
                                     std::span<const TunedConfig> records,
                                     std::vector<RowChoice> defaults) {
  return Ladder(spec, device, records, std::move(defaults)).choices();
}

std::vector<LaunchConfig> measured_configs(
    const KernelSpec& spec, const DeviceInfo& device,
    std::span<const TunedConfig> records) {
  const auto features = device_features(device);
  std::vector<LaunchConfig> configs;
  for (const TunedConfig& record : records) {
    const bool known =
        std::ranges::find(configs, record.config) != configs.end();
    if (!known && same_architecture(record.device, features) &&
        serves(record, spec, device)) {
      configs.push_back(record.config);
    }
  }
  return configs;
}

}  // namespace logpjit::runtime
