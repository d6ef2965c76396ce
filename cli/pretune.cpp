// logpjit pretune: measures launch configurations and keeps the fastest.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include "cache/config_store.hpp"
#include "cli/check_cached.hpp"
#include "cli/commands.hpp"
#include "cli/failure.hpp"
#include "cli/flags.hpp"
#include "cli/interrupt.hpp"
#include "cli/pretune_archs.hpp"
#include "cli/progress.hpp"
#include "cli/report_table.hpp"
#include "cli/shape_flags.hpp"
#include "cli/write_text.hpp"
#include "logpjit/error.hpp"
#include "logpjit/runtime.hpp"
#include "tuning/report.hpp"
#include "tuning/report_html.hpp"
#include "tuning/tuner.hpp"

namespace logpjit::cli {
namespace {

using runtime::TunedShape;

struct Flags {
  DeviceFlags where;
  ShapeFlags shapes;
  std::string from;
  std::string archs;
  bool candidates = false;
  std::string check;
  double budget = 180;
  std::string report;
  std::string html;
  bool force = false;
  bool json = false;
};

std::vector<TunedShape> wanted_shapes(const Flags& flags, DeviceKind kind) {
  if (!flags.from.empty() && flags.shapes.names_vocabulary()) {
    throw Error(ErrorCode::kInvalidArgument,
                "--from: names the shapes; leave out --model and --vocab");
  }
  if (!flags.from.empty()) return read_shapes(flags.from);
  if (!flags.shapes.names_vocabulary()) {
    throw Error(ErrorCode::kInvalidArgument,
                "--model: give models, or vocabularies by --vocab, or recorded "
                "calls by --from");
  }
  return flags.shapes.shapes(kind);
}

/// "r.json" -> "r.html"
std::string page_beside(const std::string& report) {
  return std::filesystem::path(report).replace_extension(".html").string();
}

/// What was tuned is in the store by now; what cannot be written is said last.
int write_files(const Flags& flags, const tuning::Report& report) {
  const std::string page = !flags.html.empty()     ? flags.html
                           : !flags.report.empty() ? page_beside(flags.report)
                                                   : std::string();
  int code = kSuccess;
  const auto write = [&](const std::string& file, const std::string& text) {
    try {
      if (!file.empty()) write_text(file, text);
    } catch (const Error& error) {
      print_failure(error.message() + "; the tuned configurations are kept");
      code = kFailed;
    }
  };
  write(flags.report, tuning::to_json(report));
  if (!page.empty()) write(page, tuning::to_html(report));
  return code;
}

tuning::TuneOptions make_options(const Flags& flags, const DeviceInfo& device,
                                 Progress& progress) {
  tuning::TuneOptions options = tuning::TuneOptions::for_device(device);
  options.budget_s = flags.budget;
  options.force = flags.force;
  options.interrupted = InterruptGuard::interrupted;
  const auto begin = std::chrono::steady_clock::now();
  options.on_defaults = [&progress](std::size_t count) {
    progress.set_steps(static_cast<std::int64_t>(count) + 1);
    progress.step("build what runs without tuning");
  };
  options.on_key = [&progress, begin, budget = flags.budget](
                       const TunedShape& shape, std::size_t at,
                       std::size_t count) {
    const double spent =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count();
    const double each = at == 0 ? budget / static_cast<double>(count)
                                : spent / static_cast<double>(at);
    const double left = std::min(each * static_cast<double>(count - at),
                                 std::max(budget - spent, 0.0));
    progress.step(
        fmt::format("{} {} {} x {}", shape.spec.op(), name(shape.spec.logits),
                    shape.rows, shape.spec.vocab),
        left);
  };
  return options;
}

int compile_only(const Flags& flags) {
  const bool only_cpu = flags.archs == "cpu";
  return pretune_archs(
      {.archs = flags.archs,
       .shapes = wanted_shapes(flags,
                               only_cpu ? DeviceKind::kCpu : DeviceKind::kCuda),
       .candidates = flags.candidates,
       .json = flags.json},
      flags.where.options());
}

int tune(const Flags& flags) {
  if (!(flags.budget > 0)) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("--budget: must be above 0 seconds, got {}", flags.budget));
  }
  const Options options = flags.where.options();
  const auto kind =
      options.device.starts_with("cuda") ? DeviceKind::kCuda : DeviceKind::kCpu;
  const auto shapes = wanted_shapes(flags, kind);
  Runtime runtime(options);
  cache::ConfigStore store(options.cache_directory, cache::Role::kUser,
                           options.log);
  Progress progress(static_cast<std::int64_t>(shapes.size()));
  const InterruptGuard guard;
  tuning::Tuner tuner(runtime, store,
                      make_options(flags, runtime.device(), progress));
  const tuning::TuneResult result = tuner.run(shapes);
  progress.clear();
  const tuning::Report report = tuning::make_report(result, LOGPJIT_VERSION);
  int code = write_files(flags, report);
  fmt::print("{}", flags.json ? tuning::to_json(report) : report_table(report));
  if (!result.interrupted.empty()) {
    print_failure(
        fmt::format("ended early: {}; run the same command again to "
                    "go on",
                    result.interrupted));
    code = kFailed;
  }
  if (!result.stored) {
    print_failure("no tuned configuration could be stored: see the warning");
    code = kFailed;
  }
  return code;
}

int run(const Flags& flags) {
  if (!flags.check.empty()) {
    return check_cached({flags.check, flags.archs}, flags.where.options(),
                        flags.json);
  }
  return flags.archs.empty() ? tune(flags) : compile_only(flags);
}

/// Without a device: --archs and --check, and what does not go with them.
void attach_compile_only(CLI::App& app, Flags& flags) {
  const auto exclude = [&](CLI::Option* option,
                           std::initializer_list<const char*> others) {
    for (const char* other : others) option->excludes(other);
  };
  CLI::Option* archs =
      app.add_option_function<std::string>(
             "--archs,--arch",
             [&](const std::string& text) {
               flags.archs = text;
               app.get_option("--device")->required(false);
             },
             "Compile for these architectures instead of measuring, without a "
             "GPU: sm_90a,sm_100a,...")
          ->type_name("LIST");
  exclude(archs, {"--device", "--report", "--html", "--force", "--budget"});
  app.add_flag("--candidates", flags.candidates,
               "With --archs: all that tuning there could try")
      ->needs(archs);
  exclude(
      add_check_flag(app, flags.check, {"--device"}),
      {"--device", "--model", "--ops", "--dtypes", "--vocab", "--rows", "--tp",
       "--from", "--report", "--html", "--force", "--budget", "--candidates"});
}

}  // namespace

Action attach_pretune(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  flags->where.attach_device(app);
  flags->shapes.attach(app);
  app.add_option("--from", flags->from,
                 "Tune what LOGPJIT_RECORD_MISSES wrote into this file");
  app.add_option("--budget", flags->budget, "Seconds for everything")
      ->capture_default_str();
  app.add_option("--report", flags->report,
                 "Write the JSON report here, and a page for a browser beside "
                 "it");
  app.add_option("--html", flags->html, "Write that page here");
  app.add_flag("--force", flags->force, "Measure again what is tuned already");
  app.add_flag("--json", flags->json, "Print the report instead of a table");
  attach_compile_only(app, *flags);
  flags->where.attach_cache(app);
  return [flags] { return run(*flags); };
}

}  // namespace logpjit::cli
