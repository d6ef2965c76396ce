// What changed between two reports, beyond noise.
#include "tuning/report_diff.hpp"

#include <algorithm>

#include "tuning/selector.hpp"

namespace logpjit::tuning {
namespace {

bool same_subject(const ReportEntry& a, const ReportEntry& b) {
  return a.spec == b.spec && a.rows == b.rows;
}

const ReportEntry* find(const Report& report, const ReportEntry& entry) {
  const auto found = std::ranges::find_if(
      report.entries,
      [&](const ReportEntry& each) { return same_subject(each, entry); });
  return found == report.entries.end() ? nullptr : &*found;
}

/// Quartiles from the samples where there are any, else about the median.
Timing timing(const ReportTiming& from) {
  if (!from.samples_ms.empty()) return timing_of(from.samples_ms);
  Timing made;
  made.median_ms = from.median_ms;
  made.spread = from.spread;
  made.low_ms = from.median_ms * (1 - from.spread / 2);
  made.high_ms = from.median_ms * (1 + from.spread / 2);
  return made;
}

Change compare(const ReportEntry* before, const ReportEntry* after,
               double band) {
  if (after == nullptr || !after->operation) return Change::kOnlyOld;
  if (before == nullptr || !before->operation) return Change::kOnlyNew;
  if (is_tie(timing(*before->operation), timing(*after->operation), band)) {
    return Change::kSame;
  }
  return after->operation->median_ms < before->operation->median_ms
             ? Change::kFaster
             : Change::kSlower;
}

EntryDiff diff(const ReportEntry* before, const ReportEntry* after,
               double band) {
  const ReportEntry& either = before != nullptr ? *before : *after;
  EntryDiff made{.op = either.op,
                 .dtype = either.dtype,
                 .vocab = either.vocab,
                 .rows = either.rows,
                 .change = compare(before, after, band)};
  if (before != nullptr) {
    made.old_config = before->config;
    if (before->operation) made.old_ms = before->operation->median_ms;
  }
  if (after != nullptr) {
    made.new_config = after->config;
    if (after->operation) made.new_ms = after->operation->median_ms;
  }
  return made;
}

}  // namespace

std::string_view name(Change change) {
  switch (change) {
    case Change::kFaster:
      return "faster";
    case Change::kSlower:
      return "slower";
    case Change::kSame:
      return "same";
    case Change::kOnlyOld:
      return "only in the first";
    case Change::kOnlyNew:
      return "only in the second";
  }
  return "";
}

std::vector<EntryDiff> diff(const Report& before, const Report& after,
                            double band) {
  std::vector<EntryDiff> made;
  made.reserve(before.entries.size());
  for (const ReportEntry& entry : before.entries) {
    made.push_back(diff(&entry, find(after, entry), band));
  }
  for (const ReportEntry& entry : after.entries) {
    if (find(before, entry) == nullptr) {
      made.push_back(diff(nullptr, &entry, band));
    }
  }
  return made;
}

}  // namespace logpjit::tuning
