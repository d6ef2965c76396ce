// logpjit run: an operation on .npy files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <memory>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/run_job.hpp"
#include "cli/table.hpp"
#include "logpjit/error.hpp"
#include "runtime/engine.hpp"
#include "tuning/npy.hpp"

namespace logpjit::cli {
namespace {

namespace fs = std::filesystem;
using tuning::NpyType;

NpyType file_type(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return NpyType::kUint16;
    case DType::kFp16:
      return NpyType::kFloat16;
    case DType::kInt32:
      return NpyType::kInt32;
    case DType::kInt64:
      return NpyType::kInt64;
    case DType::kFp32:
      break;
  }
  return NpyType::kFloat32;
}

void write_outputs(runtime::Device& device, const fs::path& folder,
                   const std::vector<RunOutput>& outputs) {
  for (const RunOutput& output : outputs) {
    const TensorView& view = output.tensor.view;
    tuning::NpyArray array;
    array.type = file_type(view.dtype);
    array.shape.assign(view.shape.begin(), view.shape.begin() + view.rank);
    array.bytes = tuning::download(device, output.tensor);
    tuning::write_npy(folder / (output.name + ".npy"), array);
  }
}

void make_folder(const std::string& folder) {
  std::error_code fault;
  fs::create_directories(folder, fault);
  if (fs::is_directory(folder, fault)) return;
  throw Error(
      ErrorCode::kIo,
      fmt::format("--out: {} is no folder and cannot be made one", folder));
}

void print_rows(const RunReport& report) {
  if (report.shown.empty()) return;
  const bool targets = report.shown.front().target.has_value();
  Table table({"row", targets ? "target" : "", report.shown_name, "float64",
               "difference"},
              {0, 1, 2, 3, 4});
  for (const ShownRow& shown : report.shown) {
    table.add({fmt::format("{}", shown.row),
               targets ? fmt::format("{}", *shown.target) : "",
               fmt::format("{:.7g}", shown.value),
               fmt::format("{:.10g}", shown.right),
               fmt::format("{:.1e}", shown.value - shown.right)});
  }
  fmt::print("{}", table.text());
}

std::string kernels(std::uint64_t count) {
  return fmt::format("{} kernel{}", count, count == 1 ? "" : "s");
}

void print_origin(const Runtime& runtime) {
  const Counters counters = runtime.counters();
  const auto& directory = runtime.engine().options().cache_directory;
  const std::string where = directory ? directory->string() : "memory";
  if (counters.compiled > 0) {
    fmt::print("{} compiled and kept in {}\n", kernels(counters.compiled),
               where);
  }
  const auto hits = counters.disk_hits + counters.sealed_hits;
  if (hits > 0) {
    fmt::print("{} read from the cache in {}{}\n", kernels(hits), where,
               counters.compiled == 0 ? ", nothing compiled" : "");
  }
}

int run(const RunFlags& flags) {
  const KernelSpec spec = parse_op_flag(flags.op);
  const auto job = has(spec.terms, Terms::kKl) ? read_kl_job(flags, spec)
                                               : read_row_job(flags, spec);
  Runtime runtime(flags.where.options());
  make_folder(flags.out);
  const auto start = std::chrono::steady_clock::now();
  const RunReport report = job->run(runtime);
  const std::chrono::duration<double, std::milli> taken =
      std::chrono::steady_clock::now() - start;
  write_outputs(runtime.engine().device(), flags.out, report.outputs);
  print_rows(report);
  print_origin(runtime);
  fmt::print(
      "{} rows on {} in {:.1f} ms (copies, compiling or reading, and "
      "float64 included); written to {}\n",
      report.rows, runtime.device().name, taken.count(), flags.out);
  return kSuccess;
}

}  // namespace

void require(const std::string& value, const std::string& flag,
             const std::string& op, const std::string& what) {
  if (!value.empty()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: {} needs {}", flag, op, what));
}

void forbid(const std::string& value, const std::string& flag,
            const std::string& op) {
  if (value.empty()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: {} has no use for it", flag, op));
}

Action attach_run(CLI::App& app) {
  auto flags = std::make_shared<RunFlags>();
  flags->where.attach_device(app);
  app.add_option("--op", flags->op,
                 "Operation: logp, logp+entropy, logp_backward, kl, ...")
      ->required();
  app.add_option("--dtype", flags->dtype,
                 "Of the logits: bf16 for <u2 files; else as the file says");
  app.add_option("--logits", flags->logits, "[N, V] or [B, S, V], .npy")
      ->required();
  app.add_option("--targets", flags->targets,
                 "Ids [N] or [N, K], .npy; read by logp");
  app.add_option("--teacher", flags->teacher,
                 "The teacher's logits, for a divergence, .npy");
  app.add_option("--grad-out", flags->grad_out,
                 "Upstream gradients of each output, <f4, .npy");
  add_integer(app, "--vocab", flags->vocab,
              "Columns that count; the rest is padding");
  app.add_option("--temperature", flags->temperature, "Divides the logits");
  app.add_option("--out", flags->out, "Folder for the results")->required();
  flags->where.attach_cache(app);
  return [flags] { return run(*flags); };
}

}  // namespace logpjit::cli
