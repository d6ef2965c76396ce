// Reports as tables for a terminal of 80 columns.
#include "cli/report_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/table.hpp"
#include "cli/wrap.hpp"

namespace logpjit::cli {
namespace {

using tuning::Report;
using tuning::ReportCandidate;
using tuning::ReportEntry;
using tuning::ReportPeer;
using tuning::ReportTiming;

constexpr std::size_t kColumns = 80;
constexpr std::size_t kPeerName = 37;

std::string time_text(const std::optional<ReportTiming>& timing) {
  return timing ? tuning::time_text(timing->median_ms, "us") : "-";
}

std::string spread_text(const std::optional<ReportTiming>& timing) {
  return timing ? fmt::format("{:.1f} %", 100 * timing->spread) : "-";
}

std::string ratio_text(std::optional<double> ratio) {
  return ratio ? fmt::format("{:.3f}", *ratio) : "-";
}

std::string bandwidth_text(const ReportEntry& entry) {
  const auto speed = entry.gb_per_s();
  return speed ? fmt::format("{:.{}f}", *speed, *speed < 10 ? 2 : 0) : "-";
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

std::vector<std::string> row(const ReportEntry& entry) {
  return {entry.op,
          fmt::format("{}", entry.rows),
          time_text(entry.operation),
          spread_text(entry.operation),
          ratio_text(entry.to_floor()),
          bandwidth_text(entry),
          gain_text(entry),
          error_text(entry)};
}

/// "tuned: block=512,..."
std::string outcome_text(const ReportEntry& entry) {
  std::string text = entry.status;
  if (!entry.config.empty()) text += ": " + entry.config;
  if (!entry.reason.empty()) text += ": " + entry.reason;
  return text;
}

std::string peer_text(const Report& report, const ReportEntry& entry,
                      const ReportPeer& peer) {
  const std::string name = fmt::format("{:<{}}", peer.name, kPeerName);
  if (!peer.ms) return fmt::format("{} {}", name, peer.error);
  std::string text =
      fmt::format("{} {:>9}", name, tuning::time_text(*peer.ms, "us"));
  const auto measure = peer_measure(report, entry);
  if (peer.peak_gib) text += fmt::format(" {:>6.1f} GiB", *peer.peak_gib);
  if (measure) text += fmt::format(" {:>6.2f} x", *peer.ms / measure->ms);
  if (measure && measure->what != entry.op) text += " of " + measure->what;
  return text;
}

/// What stands below an entry's row.
std::string details(const Report& report, const ReportEntry& entry) {
  std::string text = wrap(outcome_text(entry), 2, kColumns);
  if (report.kind == "bench" && entry.operation) {
    text += wrap(fmt::format("{}, {} bytes; workspace {} bytes", entry.passes,
                             entry.bytes, entry.workspace_bytes),
                 2, kColumns);
  }
  if (entry.baseline && entry.operation) {
    text += fmt::format("  {:.3f} of the plain call's time\n",
                        entry.operation->median_ms / entry.baseline->median_ms);
  }
  for (const ReportPeer& peer : entry.peers) {
    text += wrap(peer_text(report, entry, peer), 2, kColumns);
  }
  return text;
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

std::string compile_text(const ReportCandidate& candidate) {
  if (candidate.cache_hit) return "cached";
  return candidate.compile_ms > 0
             ? tuning::time_text(candidate.compile_ms, "us")
             : "-";
}

std::string columns_text(const ReportEntry& entry) {
  return fmt::format("{}, {} columns", entry.dtype, entry.vocab);
}

}  // namespace

std::string report_table(const Report& report) {
  std::string text = wrap(fmt::format("{} ({}), {}", report.device.name,
                                      report.device.software, report.compiler),
                          0, kColumns);
  Table table({"operation", "rows", "time", "spread", "floor x", "GB/s", "gain",
               "error"},
              {1, 2, 3, 4, 5, 6, 7});
  for (const ReportEntry& entry : report.entries) table.add(row(entry));
  const std::vector<std::string> lines = table.lines();
  std::string columns;
  for (std::size_t i = 0; i < report.entries.size(); ++i) {
    const ReportEntry& entry = report.entries[i];
    if (columns_text(entry) != columns) {
      columns = columns_text(entry);
      text += fmt::format("\n{}\n{}\n", columns, lines.front());
    }
    text += lines[i + 1] + "\n" + details(report, entry);
  }
  text += "\n";
  if (!report.interrupted.empty()) {
    text +=
        wrap(fmt::format("ended early: {}", report.interrupted), 0, kColumns);
  }
  return text + counts_text(report) + "\n";
}

std::string candidate_tables(const Report& report) {
  std::string text;
  for (const ReportEntry& entry : report.entries) {
    if (entry.candidates.empty()) continue;
    Table table(
        {" ", "status", "time", "spread", "regs", "compile", "configuration"},
        {2, 3, 4, 5});
    std::vector<std::string> reasons;
    for (const ReportCandidate* candidate : fastest_first(entry)) {
      table.add(
          {candidate->config == entry.config ? "*" : " ", candidate->status,
           time_text(candidate->timing), spread_text(candidate->timing),
           candidate->registers ? fmt::format("{}", *candidate->registers)
                                : "-",
           compile_text(*candidate),
           (candidate->is_default ? "(default) " : "") + candidate->config});
      reasons.push_back(candidate->reason);
    }
    const std::vector<std::string> lines = table.lines();
    text += fmt::format("\n{} {} x {} {}: {}\n{}\n", entry.op, entry.rows,
                        entry.vocab, entry.dtype,
                        entry.verdict.empty() ? entry.status : entry.verdict,
                        lines.front());
    const std::size_t last = lines.front().find("configuration");
    for (std::size_t i = 0; i < reasons.size(); ++i) {
      text += wrap(lines[i + 1], 0, kColumns, last);
      if (!reasons[i].empty()) text += wrap(reasons[i], 4, kColumns);
    }
  }
  return text;
}

}  // namespace logpjit::cli
