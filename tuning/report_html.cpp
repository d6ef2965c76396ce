// A report as one page for a browser.
#include "tuning/report_html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tuning/svg.hpp"

namespace logpjit::tuning {
namespace {

constexpr std::size_t kShownCandidates = 12;

constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--ink:#1c2430;--soft:#5a6675;--page:#fbfbfc;
--card:#fff;--edge:#d9dee5;--best:#0b7a4b;--default:#5b6fb5;--other:#a9b4c4;
--peer:#b5651d;--mark:#b3261e}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--soft:#a3adba;
--page:#14181e;--card:#1c222a;--edge:#343c48;--best:#4cc38a;--default:#8ea2ee;
--other:#5d6a7c;--peer:#e0a062;--mark:#ff8a80}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
main{max-width:1240px;margin:0 auto;padding:16px}
h1{font-size:1.5em;margin:.2em 0}h2{font-size:1.15em;margin:1.6em 0 .4em}
.soft,figcaption{color:var(--soft)}
.facts{display:flex;flex-wrap:wrap;gap:10px;padding:0;list-style:none}
.facts li{background:var(--card);border:1px solid var(--edge);
border-radius:8px;padding:8px 12px}.facts b{display:block;font-size:1.25em}
.grid{display:grid;gap:14px;grid-template-columns:repeat(auto-fill,
minmax(min(100%,430px),1fr))}
section.card,figure{background:var(--card);border:1px solid var(--edge);
border-radius:8px;padding:12px;margin:0;min-width:0}
svg{width:100%;max-width:460px;height:auto;display:block}
figcaption{font-size:.86em;margin-top:6px;overflow-wrap:anywhere}
.card figure{border:0;padding:0}.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;
font-size:.88em}th,td{text-align:left;padding:4px 8px;white-space:nowrap;
border-bottom:1px solid var(--edge)}td.n,th.n{text-align:right;
font-variant-numeric:tabular-nums}
code{font-size:.95em}details{margin-top:8px}
summary{cursor:pointer}
text{fill:var(--ink);font:11px system-ui,sans-serif}
.label{font:11px ui-monospace,monospace}.strong{font-weight:700}
.note,.tick,.axis{fill:var(--soft)}
.best,.part0{fill:var(--best)}.default,.part1{fill:var(--default)}
.other,.part2{fill:var(--other)}.peer{fill:var(--peer)}
.whisker{stroke:var(--ink);stroke-width:1}
.mark{stroke:var(--mark);stroke-width:1.5;stroke-dasharray:4 3}
svg .grid{stroke:var(--edge)}
.point{stroke:var(--card)}.operation{fill:var(--best)}
.floor{fill:var(--mark)}.copy{fill:var(--default)}
.bad{color:var(--mark)}
.config{white-space:normal;min-width:190px}
h3{margin:.2em 0 .6em}
.why{white-space:normal;overflow-wrap:anywhere;min-width:140px}
)css";

std::string shape_text(const ReportEntry& entry) {
  return fmt::format("{} {} × {}", entry.dtype, entry.rows, entry.vocab);
}

std::string ratio_text(const ReportEntry& entry) {
  const auto ratio = entry.to_floor();
  return ratio ? fmt::format("{:.3f}", *ratio) : "–";
}

std::string gain_text(const ReportEntry& entry) {
  const auto gain = entry.gain();
  return gain ? fmt::format("{:+.1f} %", 100 * *gain) : "–";
}

/// May be broken after its commas.
std::string config_code(std::string_view config) {
  std::string text = "<code>";
  for (const char c : escape_html(config)) {
    text += c;
    if (c == ',') text += "<wbr>";
  }
  return text + "</code>";
}

std::string cell(std::string_view text, bool is_number = false) {
  return fmt::format("<td{}>{}</td>", is_number ? " class=\"n\"" : "",
                     escape_html(text));
}

std::string heading_row(
    std::initializer_list<std::pair<std::string, bool>> cells) {
  std::string text = "<tr>";
  for (const auto& [name, is_number] : cells) {
    text += fmt::format("<th scope=\"col\"{}>{}</th>",
                        is_number ? " class=\"n\"" : "", name);
  }
  return text + "</tr>\n";
}

std::string overview_row(const ReportEntry& entry) {
  const auto& operation = entry.operation;
  const auto speed = entry.gb_per_s();
  return std::string("<tr>") + cell(entry.op) + cell(shape_text(entry)) +
         cell(entry.status) +
         cell(operation ? time_text(operation->median_ms) : "–", true) +
         cell(
             operation ? fmt::format("{:.1f} %", 100 * operation->spread) : "–",
             true) +
         cell(ratio_text(entry), true) +
         cell(speed ? number_text(*speed) : "–", true) +
         cell(gain_text(entry), true) + cell(entry.passes) +
         cell(fmt::format("{}", entry.workspace_bytes), true) +
         cell(entry.accuracy
                  ? fmt::format("{:.1e}", entry.accuracy->max_absolute_error)
                  : "–",
              true) +
         fmt::format("<td class=\"config\">{} {}</td></tr>\n",
                     config_code(entry.config), escape_html(entry.reason));
}

std::string overview(const Report& report) {
  std::string text =
      "<h2>All entries</h2><div class=\"scroll\" tabindex=\"0\" "
      "role=\"region\" aria-label=\"All entries\"><table><thead>";
  text += heading_row({{"Operation", false},
                       {"Shape", false},
                       {"Status", false},
                       {"Time", true},
                       {"Spread", true},
                       {"To floor", true},
                       {"GB/s", true},
                       {"Gain", true},
                       {"Passes", false},
                       {"Workspace", true},
                       {"Error", true},
                       {"Configuration", false}});
  text += "</thead><tbody>\n";
  for (const ReportEntry& entry : report.entries) text += overview_row(entry);
  return text +
         "</tbody></table></div>\n<p class=\"soft\">To floor: time over that "
         "of plain kernels which move the same bytes in the same run. Gain: "
         "over the configuration used without tuning. Workspace: bytes beside "
         "inputs and outputs. Error: greatest absolute one against "
         "float64.</p>\n";
}

std::string roofline(const Report& report) {
  std::vector<Point> points;
  for (const ReportEntry& entry : report.entries) {
    const auto add = [&](const std::optional<ReportTiming>& timing,
                         std::int64_t bytes, std::string kind) {
      if (!timing || bytes <= 0 || !(timing->median_ms > 0)) return;
      const double speed = gb_per_s(bytes, timing->median_ms);
      points.push_back(
          {.x = static_cast<double>(bytes),
           .y = speed,
           .label = fmt::format("{} {} {}: {} GB/s", kind, entry.op,
                                shape_text(entry), number_text(speed)),
           .kind = std::move(kind)});
    };
    add(entry.floor, entry.bytes, "floor");
    add(entry.copy, entry.copy_bytes, "copy");
    for (const ReportPeer& peer : entry.peers) {
      if (!peer.ms) continue;
      add(ReportTiming{.median_ms = *peer.ms}, entry.bytes, "peer");
    }
    add(entry.operation, entry.bytes, "operation");
  }
  if (points.empty()) return "";
  return scatter_chart(
      "Roofline",
      "Bandwidth against the bytes that must move. Circles: the operations; "
      "squares: plain kernels over the same bytes (red), the driver's copy "
      "(blue) and peers (brown). The numbers are in the table above.",
      "bytes that must move", "GB/s", points);
}

std::string times_chart(const Report& report) {
  std::vector<Stack> stacks;
  for (const ReportEntry& entry : report.entries) {
    const ReportTimes& times = entry.times;
    if (entry.candidates.empty()) continue;
    std::size_t hits = 0;
    for (const auto& candidate : entry.candidates) hits += candidate.cache_hit;
    stacks.push_back(
        {.label = entry.op + " " + shape_text(entry),
         .note = fmt::format(
             "{:.2f} s, {}/{} cached",
             (times.compile_ms + times.verify_ms + times.measure_ms) / 1000,
             hits, entry.candidates.size()),
         .parts = {times.compile_ms, times.verify_ms, times.measure_ms}});
  }
  if (stacks.empty()) return "";
  return stack_chart("Where the time went",
                     "Seconds for each entry: finding or compiling the "
                     "candidates, verifying them, measuring them; and how many "
                     "images came from the cache.",
                     {"compile", "verify", "measure"}, stacks);
}

Bar bar_of(std::string label, const ReportTiming& timing, std::string kind) {
  const double half = timing.median_ms * timing.spread / 2;
  return {.label = std::move(label),
          .note = time_text(timing.median_ms),
          .value = timing.median_ms,
          .low = timing.median_ms - half,
          .high = timing.median_ms + half,
          .kind = std::move(kind)};
}

std::vector<Bar> bars_of(const ReportEntry& entry) {
  std::vector<Bar> bars;
  std::size_t shown = 0;
  for (const ReportCandidate* candidate : fastest_first(entry)) {
    const bool is_best = candidate->config == entry.config;
    const bool wanted = candidate->timing && (shown < kShownCandidates ||
                                              candidate->is_default || is_best);
    if (!wanted) continue;
    ++shown;
    bars.push_back(bar_of(candidate->config +
                              (candidate->is_default ? " (default)" : "") +
                              (is_best ? " ★" : ""),
                          *candidate->timing,
                          is_best                 ? "best"
                          : candidate->is_default ? "default"
                                                  : "other"));
  }
  if (bars.empty() && entry.operation) {
    bars.push_back(bar_of(entry.config.empty() ? "logpjit" : entry.config,
                          *entry.operation, "best"));
  }
  for (const ReportPeer& peer : entry.peers) {
    if (!peer.ms) continue;
    bars.push_back(
        bar_of(peer.name, ReportTiming{.median_ms = *peer.ms}, "peer"));
  }
  return bars;
}

std::string candidate_table(const ReportEntry& entry) {
  if (entry.candidates.empty()) return "";
  std::string text = fmt::format(
      "<details><summary>All {} candidates</summary><div class=\"scroll\" "
      "tabindex=\"0\" role=\"region\" aria-label=\"Candidates of {}\"><table>"
      "<thead>",
      entry.candidates.size(), escape_html(entry.op));
  text += heading_row({{"Configuration", false},
                       {"Status", false},
                       {"Time", true},
                       {"Spread", true},
                       {"Registers", true},
                       {"Compile", true},
                       {"Cache", false},
                       {"Why", false}});
  text += "</thead><tbody>\n";
  for (const ReportCandidate* candidate : fastest_first(entry)) {
    const auto& timing = candidate->timing;
    text += fmt::format("<tr><td class=\"config\">{}</td>",
                        config_code(candidate->config)) +
            cell(candidate->status) +
            cell(timing ? time_text(timing->median_ms) : "–", true) +
            cell(timing ? fmt::format("{:.1f} %", 100 * timing->spread) : "–",
                 true) +
            cell(candidate->registers ? fmt::format("{}", *candidate->registers)
                                      : "–",
                 true) +
            cell(time_text(candidate->compile_ms), true) +
            cell(candidate->cache_hit ? "hit" : "miss") +
            cell(candidate->reason) + "</tr>\n";
  }
  text += "</tbody></table></div>";
  for (const auto& [rule, count] : entry.rejected) {
    text += fmt::format("<span class=\"soft\">{} kept out by {}. </span>",
                        count, escape_html(rule));
  }
  return text + "</details>";
}

std::string verdict_text(const ReportEntry& entry) {
  if (!entry.operation) return entry.reason;
  std::string text = time_text(entry.operation->median_ms);
  if (!entry.config.empty()) text += " with " + entry.config;
  if (entry.to_floor()) {
    text += fmt::format(", {} times the floor", ratio_text(entry));
  }
  if (entry.gain()) text += ", " + gain_text(entry) + " against the default";
  if (!entry.verdict.empty()) text += fmt::format(" ({})", entry.verdict);
  if (!entry.reason.empty()) text += "; " + entry.reason;
  return text;
}

/// What others took for the same, those that failed included.
std::string peer_table(const Report& report, const ReportEntry& entry) {
  if (entry.peers.empty()) return "";
  const auto measure = peer_measure(report, entry);
  std::string text =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Peers of " +
      escape_html(entry.op) + "\"><table><thead>";
  text += heading_row(
      {{"Peer", false},
       {"Time", true},
       {measure && measure->what != entry.op ? "Over " + measure->what
                                             : "Over this",
        true},
       {"Peak GiB", true}});
  text += "</thead><tbody>\n";
  for (const ReportPeer& peer : entry.peers) {
    text +=
        fmt::format("<tr><td class=\"why\">{}</td>", escape_html(peer.name));
    if (peer.ms) {
      text +=
          cell(time_text(*peer.ms), true) +
          cell(measure ? fmt::format("{:.2f}", *peer.ms / measure->ms) : "–",
               true) +
          cell(peer.peak_gib ? fmt::format("{:.2f}", *peer.peak_gib) : "–",
               true);
    } else {
      text += fmt::format("<td class=\"why\" colspan=\"3\">{}</td>",
                          escape_html(peer.error));
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string entry_card(const Report& report, const ReportEntry& entry) {
  std::vector<Mark> marks;
  if (entry.floor) {
    marks.push_back({.label = "floor " + time_text(entry.floor->median_ms),
                     .value = entry.floor->median_ms});
  }
  const std::vector<Bar> bars = bars_of(entry);
  std::string text =
      fmt::format("<section class=\"card\"><h3>{} · {}</h3>\n",
                  escape_html(entry.op), escape_html(shape_text(entry)));
  if (bars.empty()) {
    text += fmt::format("<p>{}: {}</p>", escape_html(entry.status),
                        escape_html(entry.reason));
  } else {
    text += bar_chart(entry.op + " " + shape_text(entry),
                      verdict_text(entry) + ". Whiskers: between quartiles." +
                          (entry.peers.empty() ? "" : " Brown: peers."),
                      bars, marks);
  }
  return text + peer_table(report, entry) + candidate_table(entry) +
         "</section>\n";
}

std::string fact(std::string_view value, std::string_view what) {
  return fmt::format("<li><b>{}</b>{}</li>", escape_html(value), what);
}

std::string facts(const Report& report) {
  std::size_t done = 0;
  double worst = 0;
  for (const ReportEntry& entry : report.entries) {
    done += entry.operation.has_value();
    worst = std::max(worst, entry.to_floor().value_or(0));
  }
  std::string text = "<ul class=\"facts\">";
  text += fact(fmt::format("{} of {}", done, report.entries.size()),
               "entries with a time");
  text += fact(fmt::format("{:.1f} s", report.seconds), "in all");
  if (worst > 0)
    text += fact(fmt::format("{:.3f}", worst), "farthest to floor");
  return text + "</ul>\n";
}

}  // namespace

std::string to_html(const Report& report) {
  const std::string title =
      fmt::format("logpjit {} on {}", report.kind, report.device.name);
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,"
      "initial-scale=1\"><title>{}</title><style>{}</style></head><body><main>"
      "<h1>{}</h1><p class=\"soft\">{} · {} · {} · logpjit {} · {}</p>\n",
      escape_html(title), kStyle, escape_html(title),
      escape_html(report.device.software), escape_html(report.device.target),
      escape_html(report.compiler), escape_html(report.logpjit),
      escape_html(report.created));
  if (!report.interrupted.empty()) {
    text += fmt::format("<p class=\"bad\">Ended early: {}</p>\n",
                        escape_html(report.interrupted));
  }
  text += facts(report) + overview(report);
  text += "<h2>Bandwidth and time</h2><div class=\"grid\">" + roofline(report) +
          times_chart(report) + "</div>\n";
  text += "<h2>Entry by entry</h2><div class=\"grid\">";
  for (const ReportEntry& entry : report.entries)
    text += entry_card(report, entry);
  return text + "</div></main></body></html>\n";
}

}  // namespace logpjit::tuning
