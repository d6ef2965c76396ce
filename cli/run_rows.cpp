// Runs of row operations (logp, entropy, ...), forward and backward.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "cli/run_files.hpp"
#include "cli/run_job.hpp"
#include "logpjit/operations.hpp"
#include "runtime/engine.hpp"
#include "tuning/reference.hpp"

namespace logpjit::cli {
namespace {

struct OutputKind {
  const char* name;  ///< of its file
  Terms term;        ///< kNone: always computed
  DType dtype;
  TensorView RowForward::*member;
  TensorView Upstream::*upstream;  ///< null: has no gradient
};

constexpr OutputKind kOutputs[] = {
    {"logp", Terms::kLogp, DType::kFp32, &RowForward::logp, &Upstream::logp},
    {"entropy", Terms::kEntropy, DType::kFp32, &RowForward::entropy,
     &Upstream::entropy},
    {"lse", Terms::kLse, DType::kFp32, &RowForward::lse, &Upstream::lse},
    {"squares", Terms::kSquares, DType::kFp32, &RowForward::squares,
     &Upstream::squares},
    {"argmax", Terms::kArgmax, DType::kInt64, &RowForward::argmax, nullptr},
    {"max", Terms::kNone, DType::kFp32, &RowForward::max, nullptr},
    {"sum", Terms::kNone, DType::kFp32, &RowForward::sum, nullptr},
};

class RowJob final : public RunJob {
 public:
  RowJob(const RunFlags& flags, const KernelSpec& spec);
  RunReport run(Runtime& runtime) override;

 private:
  void add_outputs(runtime::Device& device, RunReport& report);
  void start(Runtime& runtime);
  tuning::Problem problem() const;
  void show(runtime::Device& device, RunReport& report) const;

  RunFlags flags_;
  KernelSpec spec_;
  HostTensor logits_;
  HostTensor targets_;   ///< not given: no ids
  HostTensor grad_out_;  ///< not given: forward only
  RowWithGrad call_;
};

RowJob::RowJob(const RunFlags& flags, const KernelSpec& spec)
    : flags_(flags), spec_(spec) {
  forbid(flags.teacher, "--teacher", flags.op);
  logits_ = read_logits("--logits", flags.logits, flags.dtype);
  if (has(spec.terms, Terms::kLogp)) {
    require(flags.targets, "--targets", flags.op, "the ids of its tokens");
    targets_ = read_ids("--targets", flags.targets);
  }
  if (spec.pass == Pass::kForward) {
    forbid(flags.grad_out, "--grad-out", flags.op);
  } else {
    require(flags.grad_out, "--grad-out", flags.op, "upstream gradients");
    grad_out_ = read_floats("--grad-out", flags.grad_out);
  }
}

void RowJob::add_outputs(runtime::Device& device, RunReport& report) {
  std::vector<std::int64_t> rows = logits_.array.shape;
  rows.pop_back();
  const auto add = [&](const char* name, DType dtype, const auto& shape) {
    report.outputs.push_back(
        {name, tuning::poisoned_tensor(device, dtype, shape)});
    return report.outputs.back().tensor.view;
  };
  for (const OutputKind& kind : kOutputs) {
    if (kind.term != Terms::kNone && !has(spec_.terms, kind.term)) continue;
    call_.values.*kind.member =
        add(kind.name, kind.dtype,
            kind.term == Terms::kLogp ? targets_.array.shape : rows);
  }
  if (!grad_out_.given()) return;
  call_.gradient.tensor = add("grad", logits_.dtype, logits_.array.shape);
}

void RowJob::start(Runtime& runtime) {
  forward(runtime, call_.values);
  if (!grad_out_.given()) return;
  if (spec_.pass == Pass::kWithGrad) return forward_with_grad(runtime, call_);
  const RowForward& values = call_.values;
  backward(runtime, {.logits = values.logits,
                     .ids = values.ids,
                     .vocab = values.vocab,
                     .transform = values.transform,
                     .max = values.max,
                     .sum = values.sum,
                     .entropy = values.entropy,
                     .squares = values.squares,
                     .upstream = call_.upstream,
                     .gradient = call_.gradient});
}

RunReport RowJob::run(Runtime& runtime) {
  runtime::Device& device = runtime.engine().device();
  const auto logits = upload_host(device, logits_);
  const auto targets = upload_host(device, targets_);
  const auto grad_out = upload_host(device, grad_out_);
  call_.values.logits = logits.view;
  call_.values.ids = targets.view;
  call_.values.vocab = flags_.vocab;
  call_.values.transform.temperature = flags_.temperature;
  // The same upstream gradient for each term.
  for (const OutputKind& kind : kOutputs) {
    if (kind.upstream != nullptr && has(spec_.terms, kind.term)) {
      call_.upstream.*kind.upstream = grad_out.view;
    }
  }
  RunReport report;
  report.rows = logits.view.leading(1);
  add_outputs(device, report);
  start(runtime);
  device.synchronize();
  show(device, report);
  return report;
}

tuning::Problem RowJob::problem() const {
  tuning::Problem problem = tuning::problem_of(
      logits_.view(),
      flags_.vocab > 0 ? flags_.vocab : logits_.array.shape.back());
  problem.temperature = {flags_.temperature};
  if (targets_.given()) {
    const std::int64_t rows = std::max<std::int64_t>(problem.rows, 1);
    tuning::set_ids(problem, tuning::read_ids(targets_.view()),
                    targets_.array.elements() / rows);
  }
  return problem;
}

/// A few rows, those without a valid id only where there are no others.
std::vector<std::int64_t> shown_rows(const tuning::Problem& problem,
                                     std::int64_t vocab) {
  std::vector<std::int64_t> valid;
  std::vector<std::int64_t> ignored;
  for (std::int64_t row = 0; row < problem.rows; ++row) {
    const std::int64_t id = problem.ids_per_row > 0 ? problem.id(row, 0) : 0;
    (id >= 0 && id < vocab ? valid : ignored).push_back(row);
    if (std::ssize(valid) == kMostShownRows) break;
  }
  auto& shown = valid.empty() ? ignored : valid;
  shown.resize(
      std::min(shown.size(), static_cast<std::size_t>(kMostShownRows)));
  return shown;
}

/// The float64 value of an output at a row.
double right_value(std::string_view name, const tuning::RowValues& values) {
  if (name == "logp") return values.logp.front();
  if (name == "entropy") return values.entropy;
  return name == "lse" ? values.lse : values.squares;
}

void RowJob::show(runtime::Device& device, RunReport& report) const {
  const RunOutput& first = report.outputs.front();
  const tuning::Problem right = problem();
  const bool by_id = first.name == "logp";
  const std::int64_t width = by_id ? right.ids_per_row : 1;
  if (first.tensor.view.dtype != DType::kFp32 || width == 0) return;
  report.shown_name = first.name;
  const auto values = tuning::download_floats(device, first.tensor);
  for (const std::int64_t row : shown_rows(right, logits_.array.shape.back())) {
    ShownRow shown;
    shown.row = row;
    if (by_id) shown.target = right.id(row, 0);
    shown.value = values[static_cast<std::size_t>(row * width)];
    shown.right = right_value(first.name, tuning::reference_values(right, row));
    report.shown.push_back(shown);
  }
}

}  // namespace

std::unique_ptr<RunJob> read_row_job(const RunFlags& flags,
                                     const KernelSpec& spec) {
  return std::make_unique<RowJob>(flags, spec);
}

}  // namespace logpjit::cli
