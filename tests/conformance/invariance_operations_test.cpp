// Bits that may not change, for the operations beside logp and entropy: several
// ids, log-sum-exp, sum of p^2, argmax, and divergences.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tests/conformance/harness.hpp"
#include "tuning/numeric.hpp"

namespace logpjit::tests {
namespace {

constexpr std::int64_t kRows = 5;
constexpr std::int64_t kVocab = 20008;

/// Where an operation's inputs lie, and in which dtype.
struct Setting {
  std::string what;
  Placement placement{};
  DType dtype = DType::kBf16;
  std::int64_t first = 0;  ///< rows [first, kRows)
};

std::vector<Setting> settings() {
  return {{"again"},
          {"aligned, apart", {.offset = 8, .row_stride = kVocab + 8}},
          {"odd", {.offset = 1, .row_stride = kVocab + 1}},
          {"odd row stride", {.offset = 3, .row_stride = kVocab + 5}},
          {"fp32", {}, DType::kFp32},
          {"last row alone", {}, DType::kBf16, kRows - 1}};
}

/// Results by row, one vector of bits each.
using Rows = std::vector<std::vector<std::uint32_t>>;

class InvarianceOfOperations : public OnDevice {
 protected:
  static HostMatrix rows_of(const Setting& setting, std::uint32_t seed) {
    HostMatrix matrix = random_matrix(DType::kBf16, kRows, kVocab, 2, seed);
    matrix.dtype = setting.dtype;
    matrix.values.erase(matrix.values.begin(),
                        matrix.values.begin() + setting.first * kVocab);
    matrix.rows -= setting.first;
    return matrix;
  }

  template <typename T>
  static std::vector<T> tail(std::vector<T> values, const Setting& setting) {
    const auto per_row = static_cast<std::int64_t>(values.size()) / kRows;
    values.erase(values.begin(), values.begin() + setting.first * per_row);
    return values;
  }

  /// Appends a tensor's bits to each row's.
  void add(Rows& rows, const tuning::DeviceTensor& tensor) {
    const auto bytes = tuning::download(device(), tensor);
    const std::size_t each = bytes.size() / rows.size();
    for (std::size_t n = 0; n < rows.size(); ++n) {
      const std::size_t at = rows[n].size();
      rows[n].resize(at + each / 4);
      std::memcpy(rows[n].data() + at, bytes.data() + n * each, each);
    }
  }
  /// The same for a gradient, as bf16 in either dtype.
  void add_gradient(Rows& rows, const tuning::DeviceTensor& tensor) {
    const std::vector<double> values = fetch(device(), tensor);
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::byte narrowed[2];
      tuning::narrow(values[i], DType::kBf16, narrowed);
      std::uint16_t word = 0;
      std::memcpy(&word, narrowed, sizeof word);
      rows[i / kVocab].push_back(word);
    }
  }

  /// `run` in every setting against the plain one, and 50 times.
  template <typename Run>
  void expect_invariant(Run&& run) {
    const Rows want = run(Setting{});
    for (const Setting& setting : settings()) {
      SCOPED_TRACE(setting.what);
      const Rows got = run(setting);
      for (std::size_t n = 0; n < got.size(); ++n) {
        EXPECT_TRUE(got[n] == want[n + static_cast<std::size_t>(setting.first)])
            << "row " << n;
      }
    }
    for (int i = 0; i < (on_cpu() ? 1 : 50); ++i) {
      ASSERT_TRUE(run(Setting{}) == want) << "run " << i;
    }
  }
};
LOGPJIT_ON_DEVICES_AND_FALLBACK(InvarianceOfOperations);

TEST_P(InvarianceOfOperations, SeveralIdsAndEveryTerm) {
  constexpr std::int64_t kIds = 40;
  std::vector<std::int64_t> ids = random_ids(kRows * kIds, kVocab, 2);
  for (std::size_t i = 1; i < ids.size(); i += 4) ids[i] = ids[i - 1];
  const auto ups = random_floats(kRows * kIds, 3);
  const auto up = random_floats(kRows, 4);
  expect_invariant([&](const Setting& setting) {
    const HostMatrix matrix = rows_of(setting, 1);
    Rows rows(static_cast<std::size_t>(matrix.rows));
    const auto logits = send(device(), matrix, setting.placement);
    const auto targets = send_ids(device(), tail(ids, setting), kIds);
    const auto upstream = send(device(), tail(up, setting));
    const auto by_id = tail(ups, setting);
    const auto up_logp =
        tuning::upload(device(), DType::kFp32, std::vector{matrix.rows, kIds},
                       std::as_bytes(std::span(by_id)));
    const Values out = poisoned_values(device(), matrix.rows, kIds);
    forward(runtime(), {.logits = logits.view,
                        .ids = targets.view,
                        .logp = out.logp.view,
                        .lse = out.lse.view,
                        .squares = out.squares.view,
                        .argmax = out.argmax.view,
                        .max = out.max.view,
                        .sum = out.sum.view});
    for (const auto* output :
         {&out.logp, &out.lse, &out.squares, &out.argmax, &out.max, &out.sum}) {
      add(rows, *output);
    }
    // The second backward of the same forward gives the same.
    Rows before;
    for (int i = 0; i < 2; ++i) {
      Rows after = rows;
      const auto gradient = send(device(), matrix, setting.placement);
      backward(runtime(), {.logits = logits.view,
                           .ids = targets.view,
                           .max = out.max.view,
                           .sum = out.sum.view,
                           .squares = out.squares.view,
                           .upstream = {.logp = up_logp.view,
                                        .lse = upstream.view,
                                        .squares = upstream.view},
                           .gradient = {.tensor = gradient.view}});
      add_gradient(after, gradient);
      if (i == 1) {
        EXPECT_TRUE(after == before) << "second backward";
      }
      before = std::move(after);
    }
    return before;
  });
}

TEST_P(InvarianceOfOperations, Divergences) {
  const auto up = random_floats(kRows, 4);
  expect_invariant([&](const Setting& setting) {
    const HostMatrix matrix = rows_of(setting, 1);
    Rows rows(static_cast<std::size_t>(matrix.rows));
    const auto student = send(device(), matrix, setting.placement);
    const auto teacher = send(device(), rows_of(setting, 2), setting.placement);
    const auto upstream = send(device(), tail(up, setting));
    const Values out = poisoned_values(device(), matrix.rows, 1);
    const KlInputs inputs{.student = student.view, .teacher = teacher.view};
    kl_forward(runtime(), {.inputs = inputs,
                           .kl = out.logp.view,
                           .student_max = out.max.view,
                           .student_sum = out.sum.view,
                           .teacher_max = out.lse.view,
                           .teacher_sum = out.squares.view});
    for (const auto* output :
         {&out.logp, &out.max, &out.sum, &out.lse, &out.squares}) {
      add(rows, *output);
    }
    Rows before;
    for (int i = 0; i < 2; ++i) {
      Rows after = rows;
      const auto of_student = send(device(), matrix, setting.placement);
      const auto of_teacher = send(device(), matrix, setting.placement);
      kl_backward(runtime(), {.inputs = inputs,
                              .kl = out.logp.view,
                              .student_max = out.max.view,
                              .student_sum = out.sum.view,
                              .teacher_max = out.lse.view,
                              .teacher_sum = out.squares.view,
                              .upstream = upstream.view,
                              .student_gradient = {.tensor = of_student.view},
                              .teacher_gradient = {.tensor = of_teacher.view}});
      add_gradient(after, of_student);
      add_gradient(after, of_teacher);
      if (i == 1) {
        EXPECT_TRUE(after == before) << "second backward";
      }
      before = std::move(after);
    }
    return before;
  });
}

}  // namespace
}  // namespace logpjit::tests
