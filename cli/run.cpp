// logpjit run: an operation on .npy files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <memory>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/run_files.hpp"
#include "cli/table.hpp"
#include "logpjit/error.hpp"
#include "logpjit/operations.hpp"
#include "runtime/engine.hpp"
#include "tuning/reference.hpp"

namespace logpjit::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostShownRows = 8;

struct Flags {
  DeviceFlags where;
  std::string op;
  std::string dtype;
  std::string logits;
  std::string targets;
  std::string out;
  std::int64_t vocab = 0;
  float temperature = 1;
};

struct OutputKind {
  const char* name;  ///< of its file, and of its member
  Terms term;        ///< kNone: always written
  DType dtype;
  TensorView RowForward::*member;
};

constexpr OutputKind kOutputs[] = {
    {"logp", Terms::kLogp, DType::kFp32, &RowForward::logp},
    {"entropy", Terms::kEntropy, DType::kFp32, &RowForward::entropy},
    {"lse", Terms::kLse, DType::kFp32, &RowForward::lse},
    {"squares", Terms::kSquares, DType::kFp32, &RowForward::squares},
    {"argmax", Terms::kArgmax, DType::kInt64, &RowForward::argmax},
    {"max", Terms::kNone, DType::kFp32, &RowForward::max},
    {"sum", Terms::kNone, DType::kFp32, &RowForward::sum},
};

struct Output {
  const OutputKind* kind;
  tuning::DeviceTensor tensor;
};

struct Job {
  KernelSpec spec;
  HostTensor logits;
  HostTensor targets;  ///< rank 0 when not given
};

Job read_job(const Flags& flags) {
  Job job;
  job.spec = parse_op_flag(flags.op);
  if (job.spec.pass != Pass::kForward || has(job.spec.terms, Terms::kKl)) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("--op: {} does not run from files", flags.op));
  }
  job.logits = read_logits("--logits", flags.logits, flags.dtype);
  if (!flags.targets.empty()) {
    job.targets = read_ids("--targets", flags.targets);
  } else if (has(job.spec.terms, Terms::kLogp)) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("--targets: {} needs the ids of its tokens", flags.op));
  }
  return job;
}

std::vector<Output> make_outputs(runtime::Device& device, const Job& job,
                                 RowForward& call) {
  std::vector<Output> outputs;
  std::vector<std::int64_t> rows = job.logits.array.shape;
  rows.pop_back();
  for (const OutputKind& kind : kOutputs) {
    const bool asked =
        kind.term == Terms::kNone || has(job.spec.terms, kind.term);
    if (!asked) continue;
    const auto& shape =
        kind.term == Terms::kLogp ? job.targets.array.shape : rows;
    outputs.push_back(
        {&kind, tuning::poisoned_tensor(device, kind.dtype, shape)});
    call.*kind.member = outputs.back().tensor.view;
  }
  return outputs;
}

void write_outputs(runtime::Device& device, const fs::path& folder,
                   const std::vector<Output>& outputs) {
  for (const Output& output : outputs) {
    const TensorView& view = output.tensor.view;
    tuning::NpyArray array;
    array.type = view.dtype == DType::kInt64 ? tuning::NpyType::kInt64
                                             : tuning::NpyType::kFloat32;
    array.shape.assign(view.shape.begin(), view.shape.begin() + view.rank);
    array.bytes = tuning::download(device, output.tensor);
    tuning::write_npy(folder / fmt::format("{}.npy", output.kind->name), array);
  }
}

void make_folder(const std::string& folder) {
  std::error_code fault;
  fs::create_directories(folder, fault);
  if (fs::is_directory(folder)) return;
  throw Error(ErrorCode::kIo, fmt::format("--out: {} cannot be made: {}",
                                          folder, fault.message()));
}

tuning::Problem problem_of(const Job& job, const Flags& flags) {
  tuning::Problem problem = tuning::problem_of(
      job.logits.view(),
      flags.vocab > 0 ? flags.vocab : job.logits.array.shape.back());
  problem.temperature = {flags.temperature};
  if (job.targets.given()) {
    const std::int64_t rows = std::max<std::int64_t>(problem.rows, 1);
    tuning::set_ids(problem, tuning::read_ids(job.targets.view()),
                    job.targets.array.elements() / rows);
  }
  return problem;
}

/// The float64 value of an output at a row, where there is one to compare.
double right_value(std::string_view name, const tuning::RowValues& values) {
  if (name == "logp") return values.logp.front();
  if (name == "entropy") return values.entropy;
  if (name == "lse") return values.lse;
  if (name == "squares") return values.squares;
  return NAN;
}

/// A few rows to show, ignored ones only where there are no others.
std::vector<std::int64_t> shown_rows(const tuning::Problem& problem,
                                     std::int64_t vocab) {
  std::vector<std::int64_t> shown;
  std::vector<std::int64_t> ignored;
  for (std::int64_t row = 0; row < problem.rows; ++row) {
    const std::int64_t id = problem.ids_per_row > 0 ? problem.id(row, 0) : 0;
    (id >= 0 && id < vocab ? shown : ignored).push_back(row);
    if (std::ssize(shown) == kMostShownRows) return shown;
  }
  return shown.empty() ? ignored : shown;
}

/// Rows of the first output beside the float64 reference.
void print_rows(runtime::Device& device, const Job& job, const Flags& flags,
                const Output& output) {
  const std::string name = output.kind->name;
  const auto values = tuning::download_floats(device, output.tensor);
  const tuning::Problem problem = problem_of(job, flags);
  const bool by_id = output.kind->term == Terms::kLogp;
  const std::int64_t width = by_id ? problem.ids_per_row : 1;
  if (problem.rows == 0 || width == 0) return;
  Table table({"row", by_id ? "target" : "", name, "float64", "difference"},
              {0, 1, 2, 3, 4});
  auto rows = shown_rows(problem, job.logits.array.shape.back());
  rows.resize(std::min(rows.size(), std::size_t{kMostShownRows}));
  for (const std::int64_t row : rows) {
    const double value = values[static_cast<std::size_t>(row * width)];
    const double right =
        right_value(name, tuning::reference_values(problem, row));
    table.add({fmt::format("{}", row),
               by_id ? fmt::format("{}", problem.id(row, 0)) : "",
               fmt::format("{:.7g}", value), fmt::format("{:.10g}", right),
               fmt::format("{:.1e}", value - right)});
  }
  fmt::print("{}", table.text());
}

void print_origin(const Runtime& runtime) {
  const Counters counters = runtime.counters();
  const auto& directory = runtime.engine().options().cache_directory;
  const std::string where = directory ? directory->string() : "memory";
  if (counters.compiled > 0) {
    fmt::print("{} kernel{} compiled and kept in {}\n", counters.compiled,
               counters.compiled == 1 ? "" : "s", where);
  }
  const auto hits = counters.disk_hits + counters.sealed_hits;
  if (hits > 0) {
    fmt::print("{} kernel{} read from the cache in {}, nothing compiled\n",
               hits, hits == 1 ? "" : "s", where);
  }
}

int run(const Flags& flags) {
  const Job job = read_job(flags);
  Runtime runtime(flags.where.options());
  runtime::Device& device = runtime.engine().device();
  make_folder(flags.out);
  RowForward call;
  const auto logits = upload_host(device, job.logits);
  const auto targets = upload_host(device, job.targets);
  call.logits = logits.view;
  call.ids = targets.view;
  call.vocab = flags.vocab;
  call.transform.temperature = flags.temperature;
  const auto outputs = make_outputs(device, job, call);
  const auto start = std::chrono::steady_clock::now();
  forward(runtime, call);
  device.synchronize();
  const std::chrono::duration<double, std::milli> taken =
      std::chrono::steady_clock::now() - start;
  write_outputs(device, flags.out, outputs);
  if (outputs.front().kind->dtype == DType::kFp32) {
    print_rows(device, job, flags, outputs.front());
  }
  print_origin(runtime);
  fmt::print(
      "{} rows on {} in {:.1f} ms (compiling or reading included); "
      "written to {}\n",
      call.logits.leading(1), runtime.device().name, taken.count(), flags.out);
  return kSuccess;
}

}  // namespace

Action attach_run(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  flags->where.attach_device(app);
  app.add_option("--op", flags->op, "Operation: logp, logp+entropy, ...")
      ->required();
  app.add_option("--dtype", flags->dtype,
                 "Of the logits: bf16 for <u2 files; else as the file says");
  app.add_option("--logits", flags->logits, "[N, V] or [B, S, V], .npy")
      ->required();
  app.add_option("--targets", flags->targets, "Ids [N] or [N, K], .npy");
  add_integer(app, "--vocab", flags->vocab,
              "Columns that count; the rest is padding");
  app.add_option("--temperature", flags->temperature, "Divides the logits");
  app.add_option("--out", flags->out, "Folder for the results")->required();
  flags->where.attach_cache(app);
  return [flags] { return run(*flags); };
}

}  // namespace logpjit::cli
