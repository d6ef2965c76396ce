// logpjit verify: conformance cases on a device.
#include "tuning/verify.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/progress.hpp"
#include "tuning/embedded_cases.hpp"

namespace logpjit::cli {
namespace {

using Json = nlohmann::ordered_json;
using tuning::CaseResult;
using tuning::CaseStatus;

struct Flags {
  DeviceFlags where;
  std::string cases;
  std::string op;
  bool fallback = false;
  bool json = false;
};

std::vector<tuning::Case> selected_cases(const Flags& flags,
                                         const tuning::VerifyOptions& options) {
  auto cases = flags.cases.empty()
                   ? tuning::parse_cases(tuning::embedded_cases())
                   : tuning::read_cases(flags.cases);
  std::erase_if(cases, [&](const tuning::Case& one) {
    return !tuning::is_selected(one, options);
  });
  return cases;
}

void print_line(const CaseResult& result) {
  fmt::print("{:<18} {}", result.id, name(result.status));
  if (!result.reason.empty()) fmt::print(": {}", result.reason);
  if (!result.notes.empty()) fmt::print(" ({})", fmt::join(result.notes, "; "));
  fmt::print("\n");
  std::fflush(stdout);
}

std::int64_t count(const std::vector<CaseResult>& results, CaseStatus status) {
  return std::count_if(
      results.begin(), results.end(),
      [&](const CaseResult& result) { return result.status == status; });
}

void print_json(const std::string& device,
                const std::vector<CaseResult>& results) {
  Json document{{"device", device},
                {"passed", count(results, CaseStatus::kPassed)},
                {"failed", count(results, CaseStatus::kFailed)},
                {"skipped", count(results, CaseStatus::kSkipped)},
                {"cases", Json::array()}};
  for (const CaseResult& result : results) {
    document["cases"].push_back({{"id", result.id},
                                 {"op", result.op},
                                 {"status", name(result.status)},
                                 {"reason", result.reason},
                                 {"notes", result.notes},
                                 {"ms", result.ms}});
  }
  fmt::print("{}\n",
             document.dump(2, ' ', false, Json::error_handler_t::replace));
}

int verify(const Flags& flags) {
  tuning::VerifyOptions options;
  if (!flags.op.empty()) options.op = parse_op_flag(flags.op);
  const auto cases = selected_cases(flags, options);
  Options where = flags.where.options();
  // What is verified is what was asked for, not what stands in.
  where.fallback = flags.fallback ? FallbackUse::kAlways : FallbackUse::kNever;
  Runtime runtime(where);
  if (runtime.device().id.kind == DeviceKind::kCpu) {
    options.most_logits = tuning::kMostLogitsOnCpu;
  }
  std::vector<CaseResult> results;
  Progress progress(static_cast<std::int64_t>(cases.size()));
  for (const tuning::Case& one : cases) {
    if (flags.json || progress.on_terminal()) progress.step(one.id);
    results.push_back(verify_case(runtime, one, options));
    progress.clear();
    if (!flags.json) print_line(results.back());
  }
  if (flags.json) {
    print_json(runtime.device().name, results);
  } else {
    fmt::print("{} passed, {} failed, {} skipped\n",
               count(results, CaseStatus::kPassed),
               count(results, CaseStatus::kFailed),
               count(results, CaseStatus::kSkipped));
  }
  return count(results, CaseStatus::kFailed) == 0 ? kSuccess : kFailed;
}

}  // namespace

Action attach_verify(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  flags->where.attach_device(app);
  app.add_option("--cases", flags->cases,
                 "Case file; the built-in cases when absent");
  app.add_option("--op", flags->op, "Only this operation");
  app.add_flag("--fallback", flags->fallback, "Verify the fallback");
  flags->where.attach_cache(app);
  app.add_flag("--json", flags->json, "Print one JSON document");
  return [flags] { return verify(*flags); };
}

}  // namespace logpjit::cli
