// logpjit bench: operations beside plain kernels over the same bytes.
#include "tuning/bench.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>

#include "cli/commands.hpp"
#include "cli/failure.hpp"
#include "cli/flags.hpp"
#include "cli/progress.hpp"
#include "cli/report_table.hpp"
#include "cli/shape_flags.hpp"
#include "cli/write_text.hpp"
#include "logpjit/error.hpp"
#include "runtime/engine.hpp"
#include "tuning/model_presets.hpp"
#include "tuning/report.hpp"
#include "tuning/report_html.hpp"

namespace logpjit::cli {
namespace {

struct Flags {
  DeviceFlags where;
  ShapeFlags shapes;
  std::int64_t rounds = 9;
  std::int64_t ids_per_row = 1;
  bool half_ignored = false;
  bool fallback = false;
  std::int64_t sequences = 0;
  std::int64_t against_vocab = 0;
  std::string json;
  std::string html;
  std::string peers;
};

/// What is left open, in this command: one operation and model, few rows.
ShapeFlags with_defaults(ShapeFlags shapes, DeviceKind kind) {
  if (shapes.ops.empty()) shapes.ops = "logp";
  if (shapes.ops == "all") shapes.ops.clear();
  if (!shapes.names_vocabulary()) shapes.model = "qwen2.5";
  if (shapes.rows.empty()) {
    shapes.rows = kind == DeviceKind::kCpu ? "16" : "8192";
  }
  return shapes;
}

/// The request for a shape, with what the flags vary.
tuning::BenchRequest make_request(const Flags& flags,
                                  const runtime::TunedShape& shape) {
  tuning::BenchRequest request{.spec = shape.spec, .rows = shape.rows};
  request.measure.rounds =
      static_cast<int>(check_positive("--rounds", flags.rounds));
  request.variant = {
      .ids_per_row = check_positive("--ids-per-row", flags.ids_per_row),
      .half_ignored = flags.half_ignored,
      .fallback = flags.fallback};
  if (flags.sequences != 0) {
    request.variant.sequences = check_positive("--sequences", flags.sequences);
  }
  if (flags.against_vocab != 0) {
    request.baseline_vocab =
        check_positive("--against-vocab", flags.against_vocab);
  }
  return request;
}

/// One entry; what cannot be timed says why and is counted as failed.
tuning::ReportEntry time_one(Runtime& runtime,
                             const tuning::BenchRequest& request) {
  try {
    return make_entry(request, tuning::bench(runtime, request));
  } catch (const Error& error) {
    tuning::ReportEntry entry = make_entry(request, {});
    entry.status = "failed";
    entry.reason = error.message();
    entry.operation.reset();
    entry.floor.reset();
    entry.copy.reset();
    entry.accuracy.reset();
    entry.baseline.reset();
    return entry;
  }
}

int run(const Flags& flags) {
  Options options = flags.where.options();
  // What is timed is what was asked for, not what stands in.
  options.fallback = FallbackUse::kNever;
  const auto kind =
      options.device.starts_with("cuda") ? DeviceKind::kCuda : DeviceKind::kCpu;
  const auto shapes = with_defaults(flags.shapes, kind).shapes(kind);
  for (const runtime::TunedShape& shape : shapes) make_request(flags, shape);
  const std::string peers =
      flags.peers.empty() ? std::string() : read_text(flags.peers);
  if (std::vector<tuning::ReportEntry> none; !flags.peers.empty()) {
    tuning::add_peers(none, peers, flags.peers);  // is it one at all
  }
  Runtime runtime(options);
  tuning::Report report =
      tuning::make_report("bench", runtime.engine(), LOGPJIT_VERSION);
  const auto begin = std::chrono::steady_clock::now();
  Progress progress(static_cast<std::int64_t>(shapes.size()));
  int code = kSuccess;
  for (const runtime::TunedShape& shape : shapes) {
    if (shapes.size() > 1) progress.step(shape.text());
    report.entries.push_back(time_one(runtime, make_request(flags, shape)));
    const tuning::ReportEntry& entry = report.entries.back();
    if (entry.status != "failed") continue;
    progress.clear();
    print_failure(fmt::format("{}: {}", entry.op, entry.reason));
    code = kFailed;
  }
  progress.clear();
  report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  if (!flags.peers.empty())
    tuning::add_peers(report.entries, peers, flags.peers);
  fmt::print("{}", report_table(report));
  if (!flags.json.empty()) write_text(flags.json, tuning::to_json(report));
  if (!flags.html.empty()) write_text(flags.html, tuning::to_html(report));
  return code;
}

}  // namespace

Action attach_bench(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  flags->where.attach_device(app);
  flags->shapes.attach(app);
  app.get_option("--ops")->description("Operations, or 'all'; logp");
  app.get_option("--rows")->description("Row counts; 8192, on the CPU 16");
  add_integer(app, "--rounds", flags->rounds, "Samples of each; 9");
  add_integer(app, "--ids-per-row", flags->ids_per_row,
              "Ids a row, each there twice; 1");
  app.add_flag("--half-ignored", flags->half_ignored,
               "Every second row has no id");
  app.add_flag("--fallback", flags->fallback, "Time the fallback");
  add_integer(app, "--sequences", flags->sequences,
              "Rows are logits[:, :-1] of so many sequences");
  add_integer(app, "--against-vocab", flags->against_vocab,
              "Columns of the plain call timed beside it");
  app.add_option("--json", flags->json, "Also write the report to this file");
  app.add_option("--html", flags->html, "Also write a page for a browser");
  app.add_option("--peers", flags->peers,
                 "Results of other programs, to show beside");
  flags->where.attach_cache(app);
  return [flags] { return run(*flags); };
}

}  // namespace logpjit::cli
