// logpjit report: reports shown, compared, turned into pages.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/report_table.hpp"
#include "cli/shape_flags.hpp"
#include "cli/table.hpp"
#include "cli/write_text.hpp"
#include "logpjit/error.hpp"
#include "tuning/report.hpp"
#include "tuning/report_diff.hpp"
#include "tuning/report_html.hpp"

namespace logpjit::cli {
namespace {

using Json = nlohmann::ordered_json;
using tuning::EntryDiff;
using tuning::Report;

struct Flags {
  std::vector<std::string> files;
  std::string output;
  std::string peers;
  bool candidates = false;
  bool json = false;
};

Report read_report(const Flags& flags, const std::string& file) {
  Report report = tuning::parse_report(read_text(file), file);
  if (!flags.peers.empty()) {
    tuning::add_peers(report.entries, read_text(flags.peers), flags.peers);
  }
  return report;
}

int show(const Flags& flags) {
  for (const std::string& file : flags.files) {
    const Report report = read_report(flags, file);
    fmt::print("{}{}", report_table(report),
               flags.candidates ? candidate_tables(report) : "");
  }
  return kSuccess;
}

int make_page(const Flags& flags) {
  if (flags.files.size() > 1 && !flags.output.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "-o: names one page; give one report");
  }
  for (const std::string& file : flags.files) {
    const std::string page =
        flags.output.empty()
            ? std::filesystem::path(file).replace_extension(".html").string()
            : flags.output;
    write_text(page, tuning::to_html(read_report(flags, file)));
    fmt::print("{}\n", page);
  }
  return kSuccess;
}

std::string time_text(std::optional<double> ms) {
  return ms ? fmt::format("{:.4f}", *ms) : "-";
}

Json to_json(const EntryDiff& entry) {
  const auto or_null = [](std::optional<double> ms) {
    return ms ? Json(*ms) : Json(nullptr);
  };
  return {{"op", entry.op},
          {"dtype", entry.dtype},
          {"vocab", entry.vocab},
          {"rows", entry.rows},
          {"change", name(entry.change)},
          {"old_ms", or_null(entry.old_ms)},
          {"new_ms", or_null(entry.new_ms)},
          {"old_config", entry.old_config},
          {"new_config", entry.new_config}};
}

void print_diff(const std::vector<EntryDiff>& entries) {
  Table table({"operation", "shape", "change", "old ms", "new ms", "by",
               "configuration"},
              {3, 4, 5});
  std::map<std::string_view, int> counts;
  for (const EntryDiff& entry : entries) {
    ++counts[name(entry.change)];
    const bool both = entry.old_ms && entry.new_ms;
    table.add(
        {entry.op,
         fmt::format("{} {} x {}", entry.dtype, entry.rows, entry.vocab),
         std::string(name(entry.change)), time_text(entry.old_ms),
         time_text(entry.new_ms),
         both ? fmt::format("{:+.1f} %",
                            100 * (*entry.new_ms / *entry.old_ms - 1))
              : "-",
         entry.old_config == entry.new_config
             ? entry.new_config
             : fmt::format("{} -> {}", entry.old_config, entry.new_config)});
  }
  fmt::print("{}", table.text());
  std::string closing;
  for (const auto& [change, count] : counts) {
    closing +=
        fmt::format("{}{} {}", closing.empty() ? "" : ", ", count, change);
  }
  fmt::print("{}\n", closing.empty() ? "nothing to compare" : closing);
}

int compare(const Flags& flags) {
  const Report before = read_report(flags, flags.files.at(0));
  const Report after = read_report(flags, flags.files.at(1));
  const auto entries = tuning::diff(before, after);
  if (flags.json) {
    Json document = Json::array();
    for (const EntryDiff& entry : entries) document.push_back(to_json(entry));
    fmt::print("{}\n", Json{{"entries", document}}.dump(2));
    return kSuccess;
  }
  if (before.device.features != after.device.features) {
    fmt::print("note: {} and {} are devices of different silicon\n",
               before.device.name, after.device.name);
  }
  print_diff(entries);
  return kSuccess;
}

}  // namespace

Action attach_report(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.require_subcommand(1);
  const auto add = [&](const char* name, const char* what) {
    CLI::App* inner = app.add_subcommand(name, what);
    inner->add_option("FILE", flags->files, "Reports")->required();
    return inner;
  };
  CLI::App* shown = add("show", "Print reports as tables");
  shown->add_flag("--candidates", flags->candidates,
                  "Also all that was tried for each entry");
  shown->add_option("--peers", flags->peers, "Peers' results to show beside");
  CLI::App* compared =
      add("diff", "Say what changed between two reports, beyond noise");
  compared->get_option("FILE")->expected(2);
  compared->add_flag("--json", flags->json, "Print one JSON document");
  CLI::App* page = add("html", "Write a page for a browser");
  page->add_option("-o,--output", flags->output,
                   "The page; the report's name with .html");
  page->add_option("--peers", flags->peers, "Peers' results to show beside");
  return [flags, shown, compared] {
    if (shown->parsed()) return show(*flags);
    if (compared->parsed()) return compare(*flags);
    return make_page(*flags);
  };
}

}  // namespace logpjit::cli
