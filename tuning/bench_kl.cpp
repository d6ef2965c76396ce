// Divergences to be timed.
#include "tuning/bench_kl.hpp"

#include <algorithm>

#include "logpjit/error.hpp"
#include "logpjit/operations.hpp"
#include "runtime/engine.hpp"
#include "tuning/bench_data.hpp"

namespace logpjit::tuning {
namespace {

constexpr std::int64_t kCheckedRows = 4;
constexpr unsigned kStudentSeed = 20;
constexpr unsigned kTeacherSeed = 21;

class KlSubject final : public TunableSubject {
 public:
  KlSubject(Runtime& runtime, const KernelSpec& spec, std::int64_t rows,
            const BenchVariant& variant);

  void start(CUstream_st* stream, int turn) override;
  void start_floor(const Floors& floors, CUstream_st* stream,
                   int turn) override;
  Accuracy check() override;
  std::string_view passes() const override {
    return has_gradient() ? "2 reads, 1 write" : "2 reads";
  }
  std::int64_t bytes() const override {
    return logits_bytes() * (has_gradient() ? 3 : 2);
  }
  int buffers() const override { return static_cast<int>(students_.size()); }
  const KernelSpec& spec() const override { return spec_; }
  void use(const Kernel& kernel) override { kernel_ = kernel; }
  void poison() override;
  void poison_results() override { watched_.poison(); }
  std::span<const std::byte> fetch_results() override {
    return watched_.fetch();
  }

 private:
  bool has_gradient() const { return spec_.pass == Pass::kBackward; }
  std::int64_t logits_bytes() const {
    return rows_ * spec_.vocab *
           static_cast<std::int64_t>(size_of(spec_.logits));
  }
  std::size_t at(int turn) const {
    return static_cast<std::size_t>(turn) % students_.size();
  }
  TensorView add_output();
  bool is_reverse() const {
    return values_.inputs.direction == KlDirection::kReverse;
  }
  void set_gradient_sides();
  Accuracy check_values(const Problem& student, const Problem& teacher);
  Accuracy check_gradient(const Problem& student, const Problem& teacher);

  Runtime& runtime_;
  runtime::Device& device_;
  KernelSpec spec_;
  std::int64_t rows_;
  SequenceRows sequences_;
  std::vector<DeviceTensor> students_;
  std::vector<DeviceTensor> teachers_;
  DeviceTensor ones_;
  DeviceTensor gradient_;
  std::vector<DeviceTensor> outputs_;
  WatchedBytes watched_{device_};
  KlForward values_;
  KlBackward gradients_;
  Kernel kernel_;  ///< empty: the runtime chooses
};

KlSubject::KlSubject(Runtime& runtime, const KernelSpec& spec,
                     std::int64_t rows, const BenchVariant& variant)
    : runtime_(runtime),
      device_(runtime.engine().device()),
      spec_(spec),
      rows_(rows),
      sequences_{variant.sequences},
      students_(random_logits(device_, spec.logits, rows + variant.sequences,
                              spec.vocab, kStudentSeed)),
      teachers_(random_logits(device_, spec.logits, rows + variant.sequences,
                              spec.vocab, kTeacherSeed)),
      ones_(constant_rows(device_, rows, 1)) {
  // What the calls below are, whatever else was asked for.
  spec_ = KernelSpec{.terms = spec.terms,
                     .pass = spec.pass,
                     .logits = spec.logits,
                     .other = spec.logits,
                     .vocab = spec.vocab,
                     .rows = row_map(variant),
                     .aligned = starts_aligned(students_.front()),
                     .grad_a = spec.grad_a,
                     .grad_b = spec.grad_b};
  sequences_.check(rows);
  set_gradient_sides();
  values_.inputs.student = sequences_.matrix(students_.front().view);
  values_.inputs.teacher = sequences_.matrix(teachers_.front().view);
  values_.kl = add_output();
  values_.student_max = add_output();
  values_.student_sum = add_output();
  values_.teacher_max = add_output();
  values_.teacher_sum = add_output();
  values_.options.fallback = variant.fallback;
  gradients_.options = values_.options;
  if (!has_gradient()) {
    watched_.add_all(outputs_);
    return;
  }
  const std::int64_t shape[] = {rows + variant.sequences, spec.vocab};
  gradient_ = poisoned_tensor(device_, spec.logits, shape);
  watched_.add_sampled_rows(gradient_);
  gradients_.inputs = values_.inputs;
  gradients_.kl = values_.kl;
  gradients_.student_max = values_.student_max;
  gradients_.student_sum = values_.student_sum;
  gradients_.teacher_max = values_.teacher_max;
  gradients_.teacher_sum = values_.teacher_sum;
  gradients_.upstream = sequences_.vector(ones_.view);
  gradients_.student_gradient.tensor = sequences_.matrix(gradient_.view);
  kl_forward(runtime, values_);
}

TensorView KlSubject::add_output() {
  const std::int64_t shape[] = {rows_};
  outputs_.push_back(poisoned_tensor(device_, DType::kFp32, shape));
  return sequences_.vector(outputs_.back().view);
}

void KlSubject::start(CUstream_st* stream, int turn) {
  KlInputs& inputs = has_gradient() ? gradients_.inputs : values_.inputs;
  inputs.student = sequences_.matrix(students_[at(turn)].view);
  inputs.teacher = sequences_.matrix(teachers_[at(turn)].view);
  if (has_gradient()) {
    kernel_ ? launch(kernel_, gradients_, stream)
            : kl_backward(runtime_, gradients_, stream);
  } else {
    kernel_ ? launch(kernel_, values_, stream)
            : kl_forward(runtime_, values_, stream);
  }
}

/// What is timed is the student's gradient, which is B's in the usual
/// direction and A's in the other.
void KlSubject::set_gradient_sides() {
  const bool reverse = spec_.grad_a && !spec_.grad_b && has_gradient();
  values_.inputs.direction =
      reverse ? KlDirection::kReverse : KlDirection::kForward;
  // Only a gradient has sides; elsewhere they are as a call leaves them.
  if (!has_gradient()) {
    spec_.grad_a = KernelSpec{}.grad_a;
    spec_.grad_b = KernelSpec{}.grad_b;
  }
}

void KlSubject::poison() {
  if (has_gradient()) return poison_all(device_, {&gradient_, 1});
  poison_all(device_, outputs_);
}

void KlSubject::start_floor(const Floors& floors, CUstream_st* stream,
                            int turn) {
  const void* student = students_[at(turn)].view.data;
  const void* teacher = teachers_[at(turn)].view.data;
  if (has_gradient()) {
    floors.triad.launch(stream, student, teacher, gradient_.view.data,
                        logits_bytes());
  } else {
    floors.read.launch(stream, student, nullptr, nullptr, logits_bytes());
    floors.read.launch(stream, teacher, nullptr, nullptr, logits_bytes());
  }
}

Accuracy KlSubject::check() {
  start(nullptr, 0);
  device_.synchronize();
  const std::int64_t rows = std::min(sequences_.together(rows_), kCheckedRows);
  const FetchedRows student = fetch_rows(device_, students_.front(), rows);
  const FetchedRows teacher = fetch_rows(device_, teachers_.front(), rows);
  return has_gradient() ? check_gradient(student.problem, teacher.problem)
                        : check_values(student.problem, teacher.problem);
}

Accuracy KlSubject::check_values(const Problem& student,
                                 const Problem& teacher) {
  const auto kl = download_floats(device_, outputs_.front());
  return accuracy_of_rows(student.rows, [&](std::int64_t row,
                                            Accuracy& accuracy) {
    accuracy.add(kl[static_cast<std::size_t>(row)],
                 row_kl(teacher.distribution(row), student.distribution(row)),
                 DType::kFp32);
  });
}

Accuracy KlSubject::check_gradient(const Problem& student,
                                   const Problem& teacher) {
  const FetchedRows gradient = fetch_rows(device_, gradient_, student.rows);
  return accuracy_of_rows(
      student.rows, [&](std::int64_t row, Accuracy& accuracy) {
        const auto s = student.distribution(row);
        const auto t = teacher.distribution(row);
        const auto right = is_reverse() ? row_kl_gradients(s, t, 1).a
                                        : row_kl_gradients(t, s, 1).b;
        std::vector<double> computed;
        gradient.problem.logits(row, computed);
        for (std::size_t j = 0; j < right.size(); ++j) {
          accuracy.add(computed[j], right[j], spec_.logits);
        }
      });
}

}  // namespace

std::unique_ptr<TunableSubject> make_kl_subject(Runtime& runtime,
                                                const KernelSpec& spec,
                                                std::int64_t rows,
                                                const BenchVariant& variant) {
  if (variant.ids_per_row != 1 || variant.half_ignored) {
    throw Error(ErrorCode::kUnsupported, "a divergence has no ids to vary");
  }
  return std::make_unique<KlSubject>(runtime, spec, rows, variant);
}

}  // namespace logpjit::tuning
