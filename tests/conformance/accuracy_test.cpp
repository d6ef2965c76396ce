// Every operation against the float64 reference, on random problems.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/conformance/harness.hpp"
#include "tuning/numeric.hpp"
#include "tuning/reference_kl.hpp"

namespace logpjit::tests {
namespace {

class Accuracy : public OnDevice {};
LOGPJIT_ON_DEVICES_AND_FALLBACK(Accuracy);

struct Shape {
  DType dtype;
  std::int64_t rows;
  std::int64_t vocab;
  std::int64_t ids_per_row = 1;
  float temperature = 1;
  float softcap = 0;
};

std::vector<Shape> shapes() {
  return {{DType::kFp32, 5, 1},
          {DType::kBf16, 9, 255},
          {DType::kFp16, 7, 1031, 3},
          {DType::kBf16, 4, 50257, 1, 0.7f},
          {DType::kFp32, 3, 9000, 1, 1, 30.0f},
          {DType::kBf16, 6, 32000, 40}};
}

std::string text(const Shape& shape) {
  return std::string(name(shape.dtype)) + " " + std::to_string(shape.rows) +
         "x" + std::to_string(shape.vocab) + " K " +
         std::to_string(shape.ids_per_row);
}

void expect_close(double got, double want, double absolute, double relative,
                  const std::string& what) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << what << " is " << got;
    return;
  }
  if (got == want) return;
  EXPECT_LE(std::abs(got - want), absolute + relative * std::abs(want))
      << what << ": " << got << " instead of " << want;
}

/// All terms at once, then the gradient of their weighted sum.
struct Everything {
  HostMatrix matrix;
  std::vector<std::int64_t> ids;
  std::vector<float> up_logp, up_entropy, up_lse, up_squares;
  tuning::Problem problem;

  explicit Everything(const Shape& shape)
      : matrix(random_matrix(shape.dtype, shape.rows, shape.vocab, 2, 1)),
        ids(random_ids(shape.rows * shape.ids_per_row, shape.vocab, 2)),
        up_logp(random_floats(shape.rows * shape.ids_per_row, 3)),
        up_entropy(random_floats(shape.rows, 4)),
        up_lse(random_floats(shape.rows, 5)),
        up_squares(random_floats(shape.rows, 6)),
        problem(problem_of(matrix)) {
    tuning::set_ids(problem, ids, shape.ids_per_row);
    problem.temperature = {static_cast<double>(shape.temperature)};
    problem.softcap = static_cast<double>(shape.softcap);
  }
};

template <typename T>
std::vector<double> doubles(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

TEST_P(Accuracy, ValuesAndGradientsOfAllTerms) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(text(shape));
    const Everything all(shape);
    const auto logits = send(device(), all.matrix);
    const auto ids = send_ids(device(), all.ids, shape.ids_per_row);
    const Values out = poisoned_values(device(), shape.rows, shape.ids_per_row);
    const Transform transform{.temperature = shape.temperature,
                              .softcap = shape.softcap};
    forward(runtime(), {.logits = logits.view,
                        .ids = ids.view,
                        .transform = transform,
                        .logp = out.logp.view,
                        .entropy = out.entropy.view,
                        .lse = out.lse.view,
                        .squares = out.squares.view,
                        .argmax = out.argmax.view,
                        .max = out.max.view,
                        .sum = out.sum.view});
    const auto gradient = send(
        device(), random_matrix(shape.dtype, shape.rows, shape.vocab, 1, 9));
    const auto up_logp = tuning::upload(
        device(), DType::kFp32,
        shape.ids_per_row > 1 ? std::vector{shape.rows, shape.ids_per_row}
                              : std::vector{shape.rows},
        std::as_bytes(std::span(all.up_logp)));
    const auto up_entropy = send(device(), all.up_entropy);
    const auto up_lse = send(device(), all.up_lse);
    const auto up_squares = send(device(), all.up_squares);
    backward(runtime(), {.logits = logits.view,
                         .ids = ids.view,
                         .transform = transform,
                         .max = out.max.view,
                         .sum = out.sum.view,
                         .entropy = out.entropy.view,
                         .squares = out.squares.view,
                         .upstream = {.logp = up_logp.view,
                                      .entropy = up_entropy.view,
                                      .lse = up_lse.view,
                                      .squares = up_squares.view},
                         .gradient = {.tensor = gradient.view}});

    const auto logp = tuning::download_floats(device(), out.logp);
    const auto entropy = tuning::download_floats(device(), out.entropy);
    const auto lse = tuning::download_floats(device(), out.lse);
    const auto squares = tuning::download_floats(device(), out.squares);
    const auto columns = fetch(device(), gradient);
    const tuning::Upstream upstream{
        doubles(all.up_logp), doubles(all.up_entropy), doubles(all.up_lse),
        doubles(all.up_squares)};
    for (std::int64_t row = 0; row < shape.rows; ++row) {
      const auto at = static_cast<std::size_t>(row);
      const tuning::RowValues want = tuning::reference_values(all.problem, row);
      for (std::size_t k = 0; k < want.logp.size(); ++k) {
        expect_close(logp[at * want.logp.size() + k], want.logp[k], 2e-6, 4e-7,
                     "logp");
      }
      expect_close(entropy[at], want.entropy, 2e-6, 5e-7, "entropy");
      expect_close(lse[at], want.lse, 2e-6, 4e-7, "lse");
      expect_close(squares[at], want.squares, 1e-9, 2e-6, "squares");
      const std::vector<double> right =
          tuning::reference_gradient(all.problem, upstream, row);
      for (std::int64_t j = 0; j < shape.vocab; ++j) {
        const auto place = static_cast<std::size_t>(j);
        const double rounding = tuning::spacing(right[place], shape.dtype);
        expect_close(
            columns[at * static_cast<std::size_t>(shape.vocab) + place],
            right[place], 3e-6 + rounding, 0, "gradient");
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(Accuracy, Bf16GradientsAreCorrectlyRounded) {
  const std::int64_t vocab = on_cpu() ? 50257 : 151936;
  const std::int64_t rows = on_cpu() ? 8 : 257;
  const Shape shape{DType::kBf16, rows, vocab};
  const Everything all(shape);
  const auto logits = send(device(), all.matrix);
  const auto ids = send_ids(device(), all.ids, 1);
  const Values out = poisoned_values(device(), rows, 1);
  forward(runtime(), {.logits = logits.view,
                      .ids = ids.view,
                      .logp = out.logp.view,
                      .max = out.max.view,
                      .sum = out.sum.view});
  const auto gradient =
      send(device(), random_matrix(DType::kBf16, rows, vocab, 1, 9));
  const auto upstream = send(device(), all.up_logp);
  backward(runtime(), {.logits = logits.view,
                       .ids = ids.view,
                       .max = out.max.view,
                       .sum = out.sum.view,
                       .upstream = {.logp = upstream.view},
                       .gradient = {.tensor = gradient.view}});
  const auto columns = fetch(device(), gradient);
  std::int64_t right = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::vector<double> want = tuning::reference_gradient(
        all.problem, {doubles(all.up_logp), {}, {}, {}}, row);
    for (std::int64_t j = 0; j < vocab; ++j) {
      const double rounded =
          tuning::rounded(want[static_cast<std::size_t>(j)], DType::kBf16);
      right += columns[static_cast<std::size_t>(row * vocab + j)] == rounded;
    }
  }
  const double share =
      static_cast<double>(right) / static_cast<double>(rows * vocab);
  RecordProperty("correctly_rounded", std::to_string(share));
  EXPECT_GE(share, 0.99998);
}

TEST_P(Accuracy, KlValuesAndBothGradients) {
  struct KlShape {
    DType student, teacher;
    std::int64_t rows, vocab;
    float temperature;
  };
  for (const KlShape& shape :
       {KlShape{DType::kBf16, DType::kBf16, 5, 32000, 1},
        KlShape{DType::kBf16, DType::kFp32, 4, 1031, 1},
        KlShape{DType::kFp32, DType::kFp16, 3, 9001, 2}}) {
    HostMatrix student =
        random_matrix(shape.student, shape.rows, shape.vocab, 2, 1);
    HostMatrix teacher =
        random_matrix(shape.teacher, shape.rows, shape.vocab, 2, 2);
    const auto s = send(device(), student);
    const auto t = send(device(), teacher);
    const auto up = random_floats(shape.rows, 3);
    const auto upstream = send(device(), up);
    for (const KlDirection direction :
         {KlDirection::kForward, KlDirection::kReverse}) {
      const KlInputs inputs{
          .student = s.view,
          .teacher = t.view,
          .student_transform = {.temperature = shape.temperature},
          .direction = direction};
      const Values out = poisoned_values(device(), shape.rows, 1);
      kl_forward(runtime(), {.inputs = inputs,
                             .kl = out.logp.view,
                             .student_max = out.max.view,
                             .student_sum = out.sum.view,
                             .teacher_max = out.lse.view,
                             .teacher_sum = out.squares.view});
      const auto of_student = send(device(), student);
      const auto of_teacher = send(device(), teacher);
      kl_backward(runtime(), {.inputs = inputs,
                              .kl = out.logp.view,
                              .student_max = out.max.view,
                              .student_sum = out.sum.view,
                              .teacher_max = out.lse.view,
                              .teacher_sum = out.squares.view,
                              .upstream = upstream.view,
                              .student_gradient = {.tensor = of_student.view},
                              .teacher_gradient = {.tensor = of_teacher.view}});
      const auto kl = tuning::download_floats(device(), out.logp);
      const auto student_gradient = fetch(device(), of_student);
      const auto teacher_gradient = fetch(device(), of_teacher);
      tuning::Problem student_problem = problem_of(student);
      student_problem.temperature = {static_cast<double>(shape.temperature)};
      const tuning::Problem teacher_problem = problem_of(teacher);
      const bool reverse = direction == KlDirection::kReverse;
      for (std::int64_t row = 0; row < shape.rows; ++row) {
        const auto x = student_problem.distribution(row);
        const auto y = teacher_problem.distribution(row);
        const double want = reverse ? row_kl(x, y) : row_kl(y, x);
        const auto at = static_cast<std::size_t>(row);
        expect_close(kl[at], want, 5e-7, 1e-6, "kl");
        tuning::KlGradients gradients =
            reverse ? row_kl_gradients(x, y, static_cast<double>(up[at]))
                    : row_kl_gradients(y, x, static_cast<double>(up[at]));
        if (!reverse) std::swap(gradients.a, gradients.b);
        for (std::int64_t j = 0; j < shape.vocab; ++j) {
          const auto place = static_cast<std::size_t>(j);
          const auto index = at * static_cast<std::size_t>(shape.vocab) + place;
          expect_close(
              student_gradient[index], gradients.a[place],
              3e-6 + tuning::spacing(gradients.a[place], shape.student), 0,
              "student gradient");
          expect_close(
              teacher_gradient[index], gradients.b[place],
              3e-6 + tuning::spacing(gradients.b[place], shape.teacher), 0,
              "teacher gradient");
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST_P(Accuracy, EqualDistributionsDivergeByExactlyNothing) {
  const HostMatrix matrix = random_matrix(DType::kBf16, 6, 32000, 3, 1);
  const auto student = send(device(), matrix);
  const auto teacher = send(device(), matrix);
  const Values out = poisoned_values(device(), 6, 1);
  const KlInputs inputs{.student = student.view, .teacher = teacher.view};
  kl_forward(runtime(), {.inputs = inputs,
                         .kl = out.logp.view,
                         .student_max = out.max.view,
                         .student_sum = out.sum.view,
                         .teacher_max = out.lse.view,
                         .teacher_sum = out.squares.view});
  const auto gradient = send(device(), matrix);
  const auto upstream = send(device(), random_floats(6, 3));
  kl_backward(runtime(), {.inputs = inputs,
                          .kl = out.logp.view,
                          .student_max = out.max.view,
                          .student_sum = out.sum.view,
                          .teacher_max = out.lse.view,
                          .teacher_sum = out.squares.view,
                          .upstream = upstream.view,
                          .student_gradient = {.tensor = gradient.view}});
  EXPECT_THAT(tuning::download_floats(device(), out.logp),
              testing::Each(testing::Eq(0.0f)));
  EXPECT_THAT(fetch(device(), gradient), testing::Each(testing::Eq(0.0)));
}

}  // namespace
}  // namespace logpjit::tests
