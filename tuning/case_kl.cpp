// Running a case's divergences and their gradients on a device.
#include "tuning/case_kl.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "logpjit/operations.hpp"
#include "runtime/engine.hpp"
#include "tuning/case_calls.hpp"
#include "tuning/case_inputs.hpp"
#include "tuning/case_shards.hpp"
#include "tuning/gradient_checks.hpp"

namespace logpjit::tuning {
namespace {

/// 5e-7, and 1e-6 of the divergence.
constexpr Tolerance kKlTolerance{5e-7, 1e-6};

struct Direction {
  const char* name;           ///< of the output and its part
  const char* gradient_name;  ///< of the student's gradient
  KlDirection direction;
};
constexpr Direction kDirections[] = {
    {"kl_forward", "dlogits_forward", KlDirection::kForward},
    {"kl_reverse", "dlogits_reverse", KlDirection::kReverse}};

struct Sides {
  DeviceTensor student;
  DeviceTensor teacher;
  DeviceTensor row_index;
  DeviceTensor temperatures;
};

Sides make_sides(runtime::Device& device, const Case& one,
                 const CaseVariant& variant) {
  RowInputs rows = make_row_inputs(device, one, variant);
  return {std::move(rows.logits),
          upload_logits(device, one, *one.teacher, variant.dtype),
          std::move(rows.row_index), std::move(rows.temperatures)};
}

/// Value and saved statistics, poisoned.
struct Saved {
  DeviceTensor kl;
  DeviceTensor student_max;
  DeviceTensor student_sum;
  DeviceTensor teacher_max;
  DeviceTensor teacher_sum;
};

Saved make_saved(runtime::Device& device, const Case& one) {
  const auto make = [&] {
    return poisoned_tensor(device, DType::kFp32, row_shape(one));
  };
  return {make(), make(), make(), make(), make()};
}

KlInputs inputs_of(const Sides& sides, const CaseVariant& variant,
                   const Direction& direction) {
  KlInputs inputs;
  inputs.student = sides.student.view;
  inputs.teacher = sides.teacher.view;
  inputs.row_index = sides.row_index.view;
  inputs.student_transform = transform_of(variant, sides.temperatures);
  inputs.teacher_transform = inputs.student_transform;
  inputs.direction = direction.direction;
  return inputs;
}

/// Both sides of one row in the reference, A first.
std::pair<Distribution, Distribution> reference_sides(
    const Case& one, const CaseVariant& variant, const Direction& direction,
    std::int64_t row) {
  Problem student = stored_problem(one, variant);
  Problem teacher = one.teacher_problem();
  teacher.temperature = student.temperature;
  if (direction.direction == KlDirection::kForward) {
    return {teacher.distribution(row), student.distribution(row)};
  }
  return {student.distribution(row), teacher.distribution(row)};
}

void check_values(const Case& one, const CaseVariant& variant,
                  const Direction& direction, const Output& output,
                  Findings& findings) {
  check_written(output, findings);
  check_expected(one, output, findings);
  for (const std::int64_t row : reference_rows(one)) {
    const auto [a, b] = reference_sides(one, variant, direction, row);
    check_near(output.name, row, -1,
               output.values[static_cast<std::size_t>(row)], row_kl(a, b),
               kKlTolerance, findings);
  }
}

/// The reference's gradient of the student or of the teacher.
GradientReference make_reference(const Case& one, const CaseVariant& variant,
                                 const Direction& direction, bool student) {
  const bool wants_b =
      student == (direction.direction == KlDirection::kForward);
  const GradPattern& upstream = one.gradients.at("grad_kl");
  GradientReference reference{
      student ? "student gradient" : "teacher gradient", variant.dtype, {}, {}};
  reference.row = [&one, variant, direction, wants_b,
                   upstream](std::int64_t row) {
    const auto [a, b] = reference_sides(one, variant, direction, row);
    KlGradients both = row_kl_gradients(a, b, upstream.at(row));
    return wants_b ? std::move(both.b) : std::move(both.a);
  };
  reference.scale = [upstream](std::int64_t row) {
    return std::max(std::fabs(upstream.at(row)), 1.0);
  };
  return reference;
}

void run_gradients(Runtime& runtime, const Case& one,
                   const CaseVariant& variant, const Direction& direction,
                   const KlForward& values, Findings& findings) {
  runtime::Device& device = runtime.engine().device();
  const GradPattern& pattern = one.gradients.at("grad_kl");
  std::vector<double> list;
  list.reserve(static_cast<std::size_t>(one.rows()));
  for (std::int64_t row = 0; row < one.rows(); ++row) {
    list.push_back(pattern.at(row));
  }
  const DeviceTensor upstream = upload_floats(device, list, row_shape(one));
  const DeviceTensor student =
      poisoned_tensor(device, variant.dtype, one.shape);
  const DeviceTensor teacher =
      poisoned_tensor(device, variant.dtype, one.shape);
  KlBackward call;
  call.inputs = values.inputs;
  call.kl = values.kl;
  call.student_max = values.student_max;
  call.student_sum = values.student_sum;
  call.teacher_max = values.teacher_max;
  call.teacher_sum = values.teacher_sum;
  call.upstream = upstream.view;
  call.student_gradient.tensor = student.view;
  call.teacher_gradient.tensor = teacher.view;
  kl_backward_cut(runtime, call, one.shards);
  const GradientRows student_rows(device, student);
  check_named_gradient(one, direction.gradient_name, student_rows, findings);
  check_gradient_reference(one, student_rows,
                           make_reference(one, variant, direction, true),
                           findings);
  check_gradient_reference(one, GradientRows(device, teacher),
                           make_reference(one, variant, direction, false),
                           findings);
}

Output run_direction(Runtime& runtime, const Case& one,
                     const CaseVariant& variant, const Direction& direction,
                     Findings& findings) {
  runtime::Device& device = runtime.engine().device();
  const Sides sides = make_sides(device, one, variant);
  const auto student = watched_bytes(device, sides.student);
  const auto teacher = watched_bytes(device, sides.teacher);
  const Saved saved = make_saved(device, one);
  KlForward call;
  call.inputs = inputs_of(sides, variant, direction);
  call.kl = saved.kl.view;
  call.student_max = saved.student_max.view;
  call.student_sum = saved.student_sum.view;
  call.teacher_max = saved.teacher_max.view;
  call.teacher_sum = saved.teacher_sum.view;
  kl_forward_cut(runtime, call, one.shards);
  Output output{direction.name, 1, download_floats(device, saved.kl)};
  check_values(one, variant, direction, output, findings);
  if (one.wants_gradient() && one.gradients.contains("grad_kl")) {
    run_gradients(runtime, one, variant, direction, call, findings);
  }
  if (watched_bytes(device, sides.student) != student ||
      watched_bytes(device, sides.teacher) != teacher) {
    findings.add("an input of the divergence was written");
  }
  return output;
}

}  // namespace

bool asks_kl(const Case& one) {
  return one.teacher &&
         (asks_value(one, "kl_forward") || asks_value(one, "kl_reverse"));
}

void run_kl(Runtime& runtime, const Case& one, Findings& findings) {
  const auto variants = variants_of(one);
  for (const Direction& direction : kDirections) {
    if (!asks_value(one, direction.name)) continue;
    std::optional<Output> first;
    for (const CaseVariant& variant : variants) {
      const Output output =
          run_direction(runtime, one, variant, direction, findings);
      if (first) {
        check_same_bits(*first, output, pair_name(variants[0], variant),
                        findings);
      } else {
        first = output;
      }
    }
  }
}

}  // namespace logpjit::tuning
