// Runs of divergences, forward and backward.
#include <algorithm>

#include "cli/run_files.hpp"
#include "cli/run_job.hpp"
#include "logpjit/error.hpp"
#include "logpjit/operations.hpp"
#include "runtime/engine.hpp"
#include "tuning/reference.hpp"

namespace logpjit::cli {
namespace {

class KlJob final : public RunJob {
 public:
  KlJob(const RunFlags& flags, const KernelSpec& spec);
  RunReport run(Runtime& runtime) override;

 private:
  bool reverse() const { return flags_.op.starts_with("kl_reverse"); }
  tuning::Problem problem(const HostTensor& side) const;
  void show(runtime::Device& device, RunReport& report) const;

  RunFlags flags_;
  HostTensor student_;
  HostTensor teacher_;
  HostTensor grad_out_;  ///< not given: the value only
};

KlJob::KlJob(const RunFlags& flags, const KernelSpec& spec) : flags_(flags) {
  if (spec.pass == Pass::kWithGrad) {
    throw Error(ErrorCode::kInvalidArgument,
                "--op: no operation computes kl_with_grad: take kl_backward");
  }
  require(flags.teacher, "--teacher", flags.op, "the teacher's logits");
  student_ = read_logits("--logits", flags.logits, flags.dtype);
  teacher_ = read_logits("--teacher", flags.teacher, flags.dtype);
  if (spec.pass == Pass::kForward) {
    forbid(flags.grad_out, "--grad-out", flags.op);
  } else {
    require(flags.grad_out, "--grad-out", flags.op, "upstream gradients");
    grad_out_ = read_floats("--grad-out", flags.grad_out);
  }
}

RunReport KlJob::run(Runtime& runtime) {
  runtime::Device& device = runtime.engine().device();
  const auto student = upload_host(device, student_);
  const auto teacher = upload_host(device, teacher_);
  const auto grad_out = upload_host(device, grad_out_);
  RunReport report;
  report.rows = student.view.leading(1);
  std::vector<std::int64_t> rows = student_.array.shape;
  rows.pop_back();
  const auto add = [&](const char* name) {
    report.outputs.push_back(
        {name, tuning::poisoned_tensor(device, DType::kFp32, rows)});
    return report.outputs.back().tensor.view;
  };
  KlForward call;
  call.inputs.student = student.view;
  call.inputs.teacher = teacher.view;
  call.inputs.vocab = flags_.vocab;
  call.inputs.student_transform.temperature = flags_.temperature;
  call.inputs.teacher_transform.temperature = flags_.temperature;
  call.inputs.direction =
      reverse() ? KlDirection::kReverse : KlDirection::kForward;
  call.kl = add("kl");
  call.student_max = add("student_max");
  call.student_sum = add("student_sum");
  call.teacher_max = add("teacher_max");
  call.teacher_sum = add("teacher_sum");
  kl_forward(runtime, call);
  if (grad_out_.given()) {
    report.outputs.push_back(
        {"grad", tuning::poisoned_tensor(device, student_.dtype,
                                         student_.array.shape)});
    kl_backward(
        runtime,
        {.inputs = call.inputs,
         .kl = call.kl,
         .student_max = call.student_max,
         .student_sum = call.student_sum,
         .teacher_max = call.teacher_max,
         .teacher_sum = call.teacher_sum,
         .upstream = grad_out.view,
         .student_gradient = {.tensor = report.outputs.back().tensor.view}});
  }
  device.synchronize();
  show(device, report);
  return report;
}

tuning::Problem KlJob::problem(const HostTensor& side) const {
  tuning::Problem problem = tuning::problem_of(
      side.view(), flags_.vocab > 0 ? flags_.vocab : side.array.shape.back());
  problem.temperature = {flags_.temperature};
  return problem;
}

void KlJob::show(runtime::Device& device, RunReport& report) const {
  report.shown_name = report.outputs.front().name;
  const auto values =
      tuning::download_floats(device, report.outputs.front().tensor);
  const tuning::Problem student = problem(student_);
  const tuning::Problem teacher = problem(teacher_);
  for (std::int64_t row = 0; row < std::min(report.rows, kMostShownRows);
       ++row) {
    const auto s = student.distribution(row);
    const auto t = teacher.distribution(row);
    report.shown.push_back(
        {row, std::nullopt, values[static_cast<std::size_t>(row)],
         reverse() ? tuning::row_kl(s, t) : tuning::row_kl(t, s)});
  }
}

}  // namespace

std::unique_ptr<RunJob> read_kl_job(const RunFlags& flags,
                                    const KernelSpec& spec) {
  return std::make_unique<KlJob>(flags, spec);
}

}  // namespace logpjit::cli
