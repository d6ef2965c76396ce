// Reports as tables for a terminal.
#include "cli/report_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/table.hpp"

namespace logpjit::cli {
namespace {

using tuning::Report;
using tuning::ReportCandidate;
using tuning::ReportEntry;
using tuning::ReportTiming;

std::string time_text(const std::optional<ReportTiming>& timing) {
  if (!timing) return "-";
  const double us = timing->median_ms * 1000;
  return us < 10000 ? fmt::format("{:.1f} us", us)
                    : fmt::format("{:.2f} ms", timing->median_ms);
}

std::string spread_text(const std::optional<ReportTiming>& timing) {
  return timing ? fmt::format("{:.1f} %", 100 * timing->spread) : "-";
}

std::string ratio_text(std::optional<double> ratio) {
  return ratio ? fmt::format("{:.3f}", *ratio) : "-";
}

std::string bandwidth_text(const ReportEntry& entry) {
  const auto speed = entry.gb_per_s();
  return speed ? fmt::format("{:.4g}", *speed) : "-";
}

std::string error_text(const ReportEntry& entry) {
  return entry.accuracy
             ? fmt::format("{:.1e}", entry.accuracy->max_absolute_error)
             : "-";
}

std::string gain_text(const ReportEntry& entry) {
  const auto gain = entry.gain();
  return gain ? fmt::format("{:+.1f} %", 100 * *gain) : "-";
}

std::string shape_text(const ReportEntry& entry) {
  return fmt::format("{} {} x {}", entry.dtype, entry.rows, entry.vocab);
}

std::vector<std::string> row(const ReportEntry& entry) {
  return {entry.op,
          shape_text(entry),
          entry.status,
          time_text(entry.operation),
          spread_text(entry.operation),
          ratio_text(entry.to_floor()),
          bandwidth_text(entry),
          gain_text(entry),
          error_text(entry),
          entry.config.empty() ? entry.reason : entry.config};
}

std::string counts_text(const Report& report) {
  std::map<std::string, int> counts;
  int cached = 0;
  for (const ReportEntry& entry : report.entries) {
    ++counts[entry.status];
    cached += entry.image_cached ? 1 : 0;
  }
  std::string text = fmt::format("{} entries", report.entries.size());
  for (const auto& [status, count] : counts) {
    text += fmt::format(", {} {}", count, status);
  }
  text += fmt::format(", {} from the cache; {:.1f} s", cached, report.seconds);
  if (report.budget_s) text += fmt::format(" of {:.0f}", *report.budget_s);
  return text;
}

}  // namespace

std::string report_table(const Report& report) {
  std::string text = fmt::format("{} ({}), {}\n", report.device.name,
                                 report.device.software, report.compiler);
  Table table({"operation", "shape", "status", "time", "spread", "to floor",
               "GB/s", "gain", "error", "configuration"},
              {3, 4, 5, 6, 7, 8});
  for (const ReportEntry& entry : report.entries) table.add(row(entry));
  text += table.text();
  for (const ReportEntry& entry : report.entries) {
    if (entry.baseline && entry.operation) {
      text +=
          fmt::format("  {} {}: {:.3f} of the plain call's time\n", entry.op,
                      shape_text(entry),
                      entry.operation->median_ms / entry.baseline->median_ms);
    }
    for (const auto& peer : entry.peers) {
      text += fmt::format(
          "  {} {}: {}: {}\n", entry.op, shape_text(entry), peer.name,
          peer.ms ? fmt::format("{:.3f} ms", *peer.ms) : peer.error);
    }
  }
  if (!report.interrupted.empty()) {
    text += fmt::format("ended early: {}\n", report.interrupted);
  }
  return text + counts_text(report) + "\n";
}

std::string candidate_tables(const Report& report) {
  std::string text;
  for (const ReportEntry& entry : report.entries) {
    if (entry.candidates.empty()) continue;
    Table table({"configuration", "status", "time", "spread", "registers",
                 "compile ms", "why"},
                {2, 3, 4, 5});
    for (const ReportCandidate* candidate : fastest_first(entry)) {
      table.add(
          {candidate->config + (candidate->is_default ? " (default)" : "") +
               (candidate->config == entry.config ? " *" : ""),
           candidate->status, time_text(candidate->timing),
           spread_text(candidate->timing),
           candidate->registers ? fmt::format("{}", *candidate->registers)
                                : "-",
           fmt::format("{:.1f}", candidate->compile_ms), candidate->reason});
    }
    text += fmt::format("\n{} {}: {}\n{}", entry.op, shape_text(entry),
                        entry.verdict.empty() ? entry.status : entry.verdict,
                        table.text());
  }
  return text;
}

}  // namespace logpjit::cli
