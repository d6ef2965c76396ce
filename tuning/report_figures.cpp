// What follows from a report's numbers.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tuning/report.hpp"

namespace logpjit::tuning {

double gb_per_s(std::int64_t bytes, double ms) {
  return ms > 0 ? static_cast<double>(bytes) / ms / 1e6 : 0;
}

std::optional<double> ReportEntry::to_floor() const {
  if (!operation || !floor || !(floor->median_ms > 0)) return std::nullopt;
  return operation->median_ms / floor->median_ms;
}

std::optional<double> ReportEntry::gb_per_s() const {
  if (!operation || bytes <= 0 || !(operation->median_ms > 0)) {
    return std::nullopt;
  }
  return tuning::gb_per_s(bytes, operation->median_ms);
}

std::optional<double> ReportEntry::gain() const {
  if (!operation || !(operation->median_ms > 0) || candidates.empty() ||
      !candidates.front().timing) {
    return std::nullopt;
  }
  return candidates.front().timing->median_ms / operation->median_ms - 1;
}

std::optional<PeerMeasure> peer_measure(const Report& report,
                                        const ReportEntry& entry) {
  if (!entry.operation || !(entry.operation->median_ms > 0)) {
    return std::nullopt;
  }
  PeerMeasure measure{.ms = entry.operation->median_ms, .what = entry.op};
  if (entry.op != "kl_backward") return measure;
  const auto values =
      std::ranges::find_if(report.entries, [&](const ReportEntry& other) {
        return other.op == "kl" && other.dtype == entry.dtype &&
               other.vocab == entry.vocab && other.rows == entry.rows;
      });
  if (values == report.entries.end() || !values->operation) {
    return std::nullopt;
  }
  return PeerMeasure{.ms = measure.ms + values->operation->median_ms,
                     .what = "kl + kl_backward"};
}

std::string time_text(double ms, std::string_view micro) {
  if (ms < 1) return fmt::format("{:.1f} {}", ms * 1000, micro);
  if (ms >= 10'000) return fmt::format("{:.2f} s", ms / 1000);
  return fmt::format("{:.{}f} ms", ms, ms < 10 ? 3 : 2);
}

std::vector<const ReportCandidate*> fastest_first(const ReportEntry& entry) {
  std::vector<const ReportCandidate*> order;
  order.reserve(entry.candidates.size());
  for (const auto& candidate : entry.candidates) order.push_back(&candidate);
  std::ranges::stable_sort(order, {}, [](const ReportCandidate* candidate) {
    return candidate->timing ? candidate->timing->median_ms
                             : std::numeric_limits<double>::infinity();
  });
  return order;
}

}  // namespace logpjit::tuning
