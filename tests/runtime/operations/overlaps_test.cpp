// Every output of every operation laid over every other tensor of its call.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "logpjit/operations.hpp"
#include "tests/runtime/operations/checks_only.hpp"

namespace logpjit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::int64_t kRows = 4;
constexpr std::int64_t kColumns = 8;

enum class Use { kRead, kWritten };

struct Part {
  std::string_view name;
  TensorView* tensor;
  Use use;
};

/// Tensors in one piece of memory, none over another.
class Overlaps : public ::testing::Test {
 protected:
  Overlaps() : runtime_(checks_only()) {}

  TensorView make(DType dtype, std::initializer_list<std::int64_t> shape) {
    used_ += 256;
    return TensorView::contiguous(memory_.data() + used_ / sizeof(double),
                                  dtype, shape);
  }
  TensorView matrix() { return make(DType::kFp32, {kRows, kColumns}); }
  TensorView vector(DType dtype = DType::kFp32) { return make(dtype, {kRows}); }

  RowForward values() {
    return {.logits = matrix(),
            .ids = vector(DType::kInt64),
            .row_index = vector(DType::kInt64),
            .transform = {.temperatures = vector()},
            .logp = vector(),
            .entropy = vector(),
            .lse = vector(),
            .squares = vector(),
            .argmax = vector(DType::kInt64),
            .max = vector(),
            .sum = vector(),
            .out_of_range = make(DType::kInt64, {1})};
  }
  static std::vector<Part> parts_of(RowForward& call) {
    return {{"logits", &call.logits, Use::kRead},
            {"ids", &call.ids, Use::kRead},
            {"row_index", &call.row_index, Use::kRead},
            {"temperatures", &call.transform.temperatures, Use::kRead},
            {"logp", &call.logp, Use::kWritten},
            {"entropy", &call.entropy, Use::kWritten},
            {"lse", &call.lse, Use::kWritten},
            {"squares", &call.squares, Use::kWritten},
            {"argmax", &call.argmax, Use::kWritten},
            {"max", &call.max, Use::kWritten},
            {"sum", &call.sum, Use::kWritten},
            {"out_of_range", &call.out_of_range, Use::kWritten}};
  }
  Upstream upstream() {
    return {.logp = vector(),
            .entropy = vector(),
            .lse = vector(),
            .squares = vector()};
  }
  static void add(Upstream& upstream, std::vector<Part>& parts) {
    parts.push_back({"upstream.logp", &upstream.logp, Use::kRead});
    parts.push_back({"upstream.entropy", &upstream.entropy, Use::kRead});
    parts.push_back({"upstream.lse", &upstream.lse, Use::kRead});
    parts.push_back({"upstream.squares", &upstream.squares, Use::kRead});
  }

  KlInputs divergence(KlDirection direction) {
    return {.student = matrix(),
            .teacher = matrix(),
            .row_index = vector(DType::kInt64),
            .student_transform = {.temperatures = vector()},
            .teacher_transform = {.temperatures = vector()},
            .direction = direction};
  }
  /// The inputs, and what a forward writes and a backward reads.
  template <typename Call>
  static std::vector<Part> parts_of(Call& call, Use use) {
    KlInputs& inputs = call.inputs;
    return {
        {"student", &inputs.student, Use::kRead},
        {"teacher", &inputs.teacher, Use::kRead},
        {"row_index", &inputs.row_index, Use::kRead},
        {"temperatures", &inputs.student_transform.temperatures, Use::kRead},
        {"temperatures", &inputs.teacher_transform.temperatures, Use::kRead},
        {"kl", &call.kl, use},
        {"student_max", &call.student_max, use},
        {"student_sum", &call.student_sum, use},
        {"teacher_max", &call.teacher_max, use},
        {"teacher_sum", &call.teacher_sum, use}};
  }

  template <typename Run>
  static std::string failure(const Run& run) {
    try {
      run();
    } catch (const Error& error) {
      return fmt::format("{}: {}", name(error.code()), error.message());
    }
    return "none";
  }

  /// Each output over each other tensor, wholly and by its first element.
  template <typename Run>
  static void expect_refusals(std::string_view op,
                              const std::vector<Part>& parts, const Run& run) {
    ASSERT_THAT(failure(run), StartsWith("not_cached: ")) << "the good one";
    for (const Part& output : parts) {
      if (output.use == Use::kRead) continue;
      for (const Part& other : parts) {
        if (other.tensor == output.tensor) continue;
        SCOPED_TRACE(
            fmt::format("{}: {} over {}", op, output.name, other.name));
        void* const place = output.tensor->data;
        output.tensor->data = other.tensor->data;
        const std::string one =
            fmt::format("{}: overlaps {}", output.name, other.name);
        const std::string two =
            fmt::format("{}: overlaps {}", other.name, output.name);
        EXPECT_THAT(
            failure(run),
            AllOf(StartsWith(fmt::format("invalid_argument: {}: ", op)),
                  ::testing::AnyOf(HasSubstr(one), other.use == Use::kWritten
                                                       ? HasSubstr(two)
                                                       : HasSubstr(one))));
        output.tensor->data = place;
      }
    }
  }

  std::vector<double> memory_ = std::vector<double>(1024);
  std::size_t used_ = 0;
  Runtime runtime_;
};

TEST_F(Overlaps, Values) {
  RowForward call = values();
  expect_refusals("forward", parts_of(call), [&] { forward(runtime_, call); });
}

TEST_F(Overlaps, Gradient) {
  RowBackward call{.logits = matrix(),
                   .ids = vector(DType::kInt64),
                   .row_index = vector(DType::kInt64),
                   .transform = {.temperatures = vector()},
                   .max = vector(),
                   .sum = vector(),
                   .entropy = vector(),
                   .squares = vector(),
                   .upstream = upstream(),
                   .gradient = {.tensor = matrix()}};
  std::vector<Part> parts{
      {"ids", &call.ids, Use::kRead},
      {"row_index", &call.row_index, Use::kRead},
      {"temperatures", &call.transform.temperatures, Use::kRead},
      {"max", &call.max, Use::kRead},
      {"sum", &call.sum, Use::kRead},
      {"entropy", &call.entropy, Use::kRead},
      {"squares", &call.squares, Use::kRead},
      {"gradient", &call.gradient.tensor, Use::kWritten}};
  add(call.upstream, parts);
  const auto run = [&] { backward(runtime_, call); };
  // The other way round, since one in place has to stay there.
  call.gradient = {.tensor = call.logits, .in_place = true};
  ASSERT_THAT(failure(run), StartsWith("not_cached: "));
  for (const Part& part : parts) {
    if (part.use == Use::kWritten) continue;
    SCOPED_TRACE(part.name);
    void* const place = part.tensor->data;
    part.tensor->data = call.logits.data;
    EXPECT_THAT(failure(run),
                HasSubstr(fmt::format("gradient: overlaps {}", part.name)));
    part.tensor->data = place;
  }
  call.gradient = {.tensor = matrix()};
  parts.push_back({"logits", &call.logits, Use::kRead});
  expect_refusals("backward", parts, run);
  // What is not read is an input all the same.
  call.upstream = {.lse = call.upstream.lse};
  expect_refusals("backward",
                  {{"entropy", &call.entropy, Use::kRead},
                   {"squares", &call.squares, Use::kRead},
                   {"gradient", &call.gradient.tensor, Use::kWritten}},
                  run);
}

TEST_F(Overlaps, ValuesAndGradient) {
  RowWithGrad call{.values = values(),
                   .upstream = upstream(),
                   .gradient = {.tensor = matrix()}};
  std::vector<Part> parts = parts_of(call.values);
  add(call.upstream, parts);
  const auto run = [&] { forward_with_grad(runtime_, call); };
  std::vector<Part> all = parts;
  all.push_back({"gradient", &call.gradient.tensor, Use::kWritten});
  expect_refusals("forward_with_grad", all, run);
  call.gradient = {.tensor = call.values.logits, .in_place = true};
  ASSERT_THAT(failure(run), StartsWith("not_cached: "));
  for (const Part& part : parts) {
    if (part.tensor == &call.values.logits) continue;
    SCOPED_TRACE(part.name);
    void* const place = part.tensor->data;
    part.tensor->data = call.values.logits.data;
    EXPECT_THAT(failure(run), HasSubstr(": overlaps "));
    part.tensor->data = place;
  }
}

TEST_F(Overlaps, Divergence) {
  for (const auto direction : {KlDirection::kForward, KlDirection::kReverse}) {
    used_ = 0;
    KlForward call{.inputs = divergence(direction),
                   .kl = vector(),
                   .student_max = vector(),
                   .student_sum = vector(),
                   .teacher_max = vector(),
                   .teacher_sum = vector()};
    expect_refusals("kl_forward", parts_of(call, Use::kWritten),
                    [&] { kl_forward(runtime_, call); });
  }
}

TEST_F(Overlaps, GradientsOfADivergence) {
  for (const auto direction : {KlDirection::kForward, KlDirection::kReverse}) {
    used_ = 0;
    KlBackward call{.inputs = divergence(direction),
                    .kl = vector(),
                    .student_max = vector(),
                    .student_sum = vector(),
                    .teacher_max = vector(),
                    .teacher_sum = vector(),
                    .upstream = vector(),
                    .student_gradient = {.tensor = matrix()},
                    .teacher_gradient = {.tensor = matrix()}};
    std::vector<Part> parts = parts_of(call, Use::kRead);
    parts.push_back({"upstream", &call.upstream, Use::kRead});
    parts.push_back(
        {"student_gradient", &call.student_gradient.tensor, Use::kWritten});
    parts.push_back(
        {"teacher_gradient", &call.teacher_gradient.tensor, Use::kWritten});
    expect_refusals("kl_backward", parts, [&] { kl_backward(runtime_, call); });
  }
}

}  // namespace
}  // namespace logpjit
