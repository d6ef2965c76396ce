// logpjit bench: an operation beside plain kernels over the same bytes.
#include "tuning/bench.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/table.hpp"
#include "cli/write_text.hpp"

namespace logpjit::cli {
namespace {

using Json = nlohmann::ordered_json;
using tuning::BenchResult;
using tuning::Timing;

struct Flags {
  DeviceFlags where;
  std::string op = "logp";
  std::string dtype = "bf16";
  std::int64_t vocab = 151936;
  std::int64_t rows = 0;
  std::int64_t rounds = 9;
  std::int64_t ids_per_row = 1;
  bool half_ignored = false;
  bool fallback = false;
  std::int64_t against_vocab = 0;
  std::string json;
};

constexpr std::int64_t kGpuRows = 8192;
constexpr std::int64_t kCpuRows = 16;

tuning::BenchRequest make_request(const Flags& flags) {
  tuning::BenchRequest request;
  request.spec = parse_op_flag(flags.op);
  request.spec.logits = parse_float_flag("--dtype", flags.dtype);
  request.spec.vocab = check_positive("--vocab", flags.vocab);
  request.variant = {
      .ids_per_row = check_positive("--ids-per-row", flags.ids_per_row),
      .half_ignored = flags.half_ignored,
      .fallback = flags.fallback};
  if (flags.against_vocab != 0) {
    request.baseline_vocab =
        check_positive("--against-vocab", flags.against_vocab);
  }
  request.measure.rounds =
      static_cast<int>(check_positive("--rounds", flags.rounds));
  return request;
}

double gb_per_s(double bytes, double ms) { return bytes / ms / 1e6; }

Json to_json(const Timing& timing) {
  return {{"median_ms", timing.median_ms},
          {"spread", timing.spread},
          {"rounds_ms", timing.rounds_ms}};
}

Json to_json(const DeviceInfo& device, const tuning::BenchRequest& request,
             const BenchResult& result) {
  Json document{{"device", device.name},
                {"software", device.software},
                {"spec", request.spec.text()},
                {"rows", request.rows},
                {"ids_per_row", request.variant.ids_per_row},
                {"half_ignored", request.variant.half_ignored},
                {"fallback", request.variant.fallback},
                {"passes", result.passes},
                {"bytes", result.bytes},
                {"buffers", result.buffers},
                {"prepare_ms", result.prepare_ms},
                {"operation", to_json(result.operation)},
                {"floor", to_json(result.floor)},
                {"copy", to_json(result.copy)},
                {"copy_bytes", result.copy_bytes},
                {"operation_to_floor", result.to_floor()},
                {"peak_workspace_bytes", result.peak_workspace},
                {"max_absolute_error", result.accuracy.max_absolute()},
                {"max_ulp", result.accuracy.max_ulp()},
                {"correctly_rounded", result.accuracy.correctly_rounded()}};
  if (result.baseline) {
    document["baseline"] = to_json(*result.baseline);
    document["baseline"]["spec"] = request.baseline()->text();
    document["operation_to_baseline"] = result.to_baseline();
  }
  return document;
}

std::vector<std::string> row(std::string what, const Timing& timing,
                             std::int64_t bytes, double floor_ms) {
  return {std::move(what), fmt::format("{:.4f}", timing.median_ms),
          fmt::format("{:.1f} %", 100 * timing.spread),
          fmt::format("{:.1f}",
                      gb_per_s(static_cast<double>(bytes), timing.median_ms)),
          fmt::format("{:.3f}", timing.median_ms / floor_ms)};
}

std::string baseline_text(const tuning::BenchRequest& request) {
  return fmt::format("one id a row, none ignored, {} columns",
                     request.baseline()->vocab);
}

void print_table(const DeviceInfo& device, const tuning::BenchRequest& request,
                 const BenchResult& result) {
  fmt::print("{}: {} {}, {} x {}\n", device.name, request.spec.op(),
             name(request.spec.logits), request.rows, request.spec.vocab);
  const double floor = result.floor.median_ms;
  Table table({"", "ms", "spread", "GB/s", "to floor"}, {1, 2, 3, 4});
  table.add(row(fmt::format("operation ({})", result.passes), result.operation,
                result.bytes, floor));
  table.add(row("floor: the same bytes, nothing else", result.floor,
                result.bytes, floor));
  table.add(row("copy of the logits by the driver", result.copy,
                result.copy_bytes, floor));
  if (result.baseline) {
    table.add({"baseline: " + baseline_text(request),
               fmt::format("{:.4f}", result.baseline->median_ms),
               fmt::format("{:.1f} %", 100 * result.baseline->spread), "",
               fmt::format("{:.3f}", result.baseline->median_ms / floor)});
  }
  fmt::print("{}", table.text());
  if (result.baseline) {
    fmt::print("{:.3f} of the baseline's time\n", result.to_baseline());
  }
  fmt::print(
      "prepared in {:.1f} ms; against float64 ({} values): error at "
      "most {:.1e}, {:.4f} % correctly rounded\n",
      result.prepare_ms, result.accuracy.count(),
      result.accuracy.max_absolute(),
      100 * result.accuracy.correctly_rounded());
}

int run(const Flags& flags) {
  tuning::BenchRequest request = make_request(flags);
  Options options = flags.where.options();
  // What is timed is what was asked for, not what stands in.
  options.fallback = FallbackUse::kNever;
  Runtime runtime(options);
  const DeviceInfo& device = runtime.device();
  const bool cpu = device.id.kind == DeviceKind::kCpu;
  request.rows = flags.rows == 0 ? (cpu ? kCpuRows : kGpuRows)
                                 : check_positive("--rows", flags.rows);
  const BenchResult result = tuning::bench(runtime, request);
  if (!flags.json.empty()) {
    write_text(flags.json, to_json(device, request, result).dump(2) + "\n");
  }
  print_table(device, request, result);
  return kSuccess;
}

}  // namespace

Action attach_bench(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  flags->where.attach_device(app);
  app.add_option("--op", flags->op, "Operation")->capture_default_str();
  app.add_option("--dtype", flags->dtype, "Logits: fp32, bf16 or fp16")
      ->capture_default_str();
  add_integer(app, "--vocab", flags->vocab, "Columns; 151936");
  add_integer(app, "--rows", flags->rows, "Rows; 8192, or 16 on the CPU");
  add_integer(app, "--rounds", flags->rounds, "Samples of each; 9");
  add_integer(app, "--ids-per-row", flags->ids_per_row,
              "Ids a row, each there twice; 1");
  app.add_flag("--half-ignored", flags->half_ignored,
               "Every second row has no id");
  app.add_flag("--fallback", flags->fallback, "Time the fallback");
  add_integer(app, "--against-vocab", flags->against_vocab,
              "Columns of the plain call timed beside it");
  app.add_option("--json", flags->json, "Also write the report to this file");
  flags->where.attach_cache(app);
  return [flags] { return run(*flags); };
}

}  // namespace logpjit::cli
