// The project's conformance cases: the float64 reference gives every number
// they expect, and none of the faulty ones they name.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "tuning/cases.hpp"
#include "tuning/numeric.hpp"

namespace logpjit::tuning {
namespace {

const char* const kFile =
    LOGPJIT_SOURCE_DIR "/tests/conformance/data/logprob-cases.json";
/// The expected values are right to about this.
constexpr Tolerance kTight{1e-12, 1e-11};
constexpr std::int64_t kMostElements = 1 << 22;

std::vector<Case> all_cases() { return read_cases(kFile); }

class EachCase : public testing::TestWithParam<Case> {
 protected:
  const Case& one() const { return GetParam(); }

  void check_values() const;
  void check_divergences() const;
  void check_gradients() const;
  void check_divergence_gradients() const;
  void check_single_terms() const;
  void check_fault() const;
  void check_temperature_2() const;

  /// All rows, or those of the probes where that would take long.
  std::vector<std::int64_t> gradient_rows() const;

  std::vector<std::int64_t> rows() const {
    if (!one().expected.rows.empty()) return one().expected.rows;
    std::vector<std::int64_t> list(static_cast<std::size_t>(one().rows()));
    std::iota(list.begin(), list.end(), 0);
    return list;
  }

  void expect(const char* name, std::size_t at, double value) const {
    const auto found = one().expected.values.find(name);
    if (found == one().expected.values.end()) return;
    const double right = found->second.at(at);
    EXPECT_TRUE(kTight.near(value, right))
        << name << "[" << at << "] = " << value << ", expected " << right;
  }
};

void EachCase::check_values() const {
  const Problem problem = one().problem();
  const auto list = rows();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto values = reference_values(problem, list[i]);
    for (std::size_t k = 0; k < values.logp.size(); ++k) {
      expect("logp", i * values.logp.size() + k, values.logp[k]);
    }
    expect("entropy", i, values.entropy);
    expect("lse", i, values.lse);
  }
}

void EachCase::check_divergences() const {
  if (!one().teacher) return;
  const Problem student = one().problem();
  const Problem teacher = one().teacher_problem();
  const auto list = rows();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto s = student.distribution(list[i]);
    const auto t = teacher.distribution(list[i]);
    expect("kl_forward", i, row_kl(t, s));
    expect("kl_reverse", i, row_kl(s, t));
  }
}

void expect_row(const std::vector<double>& right, std::int64_t row,
                const std::vector<double>& gradient) {
  for (std::size_t j = 0; j < gradient.size(); ++j) {
    const auto at = static_cast<std::size_t>(row) * gradient.size() + j;
    EXPECT_TRUE(kTight.near(gradient[j], right.at(at)))
        << row << ", " << j << ": " << gradient[j] << " vs " << right.at(at);
  }
}

std::vector<std::int64_t> EachCase::gradient_rows() const {
  std::set<std::int64_t> chosen;
  for (const Probe& probe : one().expected.gradient_probes) {
    chosen.insert(probe.row);
  }
  const bool all = one().rows() * one().columns() <= kMostElements;
  for (std::int64_t row = 0; all && row < one().rows(); ++row) {
    chosen.insert(row);
  }
  return {chosen.begin(), chosen.end()};
}

void EachCase::check_gradients() const {
  if (!one().wants_gradient() || one().teacher) return;
  const Problem problem = one().problem();
  const Upstream upstream = one().upstream();
  const auto& expected = one().expected;
  for (const std::int64_t row : gradient_rows()) {
    const auto gradient = reference_gradient(problem, upstream, row);
    if (expected.gradients.contains("dlogits")) {
      expect_row(expected.gradients.at("dlogits"), row, gradient);
    }
    if (expected.gradient_rows.contains(row)) {
      expect_row(expected.gradient_rows.at(row), 0, gradient);
    }
    for (const Probe& probe : expected.gradient_probes) {
      if (probe.row != row) continue;
      const double value = gradient.at(static_cast<std::size_t>(probe.column));
      // Some probes are of the gradient as it is stored.
      EXPECT_TRUE(kTight.near(value, probe.value) ||
                  kTight.near(rounded(value, one().dtype), probe.value))
          << row << ", " << probe.column << ": " << value;
    }
    if (expected.gradients.contains("dlogits_bf16_rne")) {
      std::vector<double> nearest;
      for (double g : gradient) nearest.push_back(rounded(g, DType::kBf16));
      expect_row(expected.gradients.at("dlogits_bf16_rne"), row, nearest);
    }
  }
}

void EachCase::check_divergence_gradients() const {
  if (!one().teacher || !one().gradients.contains("grad_kl")) return;
  const Problem student = one().problem();
  const Problem teacher = one().teacher_problem();
  for (std::int64_t row = 0; row < one().rows(); ++row) {
    const auto s = student.distribution(row);
    const auto t = teacher.distribution(row);
    const double g = one().gradients.at("grad_kl").at(row);
    expect_row(one().expected.gradients.at("dlogits_forward"), row,
               row_kl_gradients(t, s, g).b);
    expect_row(one().expected.gradients.at("dlogits_reverse"), row,
               row_kl_gradients(s, t, g).a);
  }
}

void EachCase::check_single_terms() const {
  const auto& gradients = one().expected.gradients;
  if (!gradients.contains("dlogits_logp")) return;
  const Upstream both = one().upstream();
  for (std::int64_t row = 0; row < one().rows(); ++row) {
    expect_row(
        gradients.at("dlogits_logp"), row,
        reference_gradient(one().problem(), {both.logp, {}, {}, {}}, row));
    expect_row(
        gradients.at("dlogits_entropy"), row,
        reference_gradient(one().problem(), {{}, both.entropy, {}, {}}, row));
  }
}

/// Faulty values of one output, as far as they are numbers.
std::vector<double> faulty(const Case& one, const char* name) {
  std::vector<double> values;
  const auto json = nlohmann::json::parse(one.expected.bug_would_give);
  if (!json.contains(name) || !json[name].is_array()) return values;
  for (const auto& value : json[name]) {
    values.push_back(value.is_number() ? value.get<double>() : NAN);
  }
  return values;
}

void EachCase::check_fault() const {
  if (one().expected.bug_would_give.empty()) return;
  for (const auto& [name, right] : one().expected.values) {
    const auto wrong = faulty(one(), name.c_str());
    bool told = wrong.empty();
    for (std::size_t i = 0; i < wrong.size(); ++i) {
      told = told || !one().expected.tolerance.near(wrong[i], right.at(i));
    }
    EXPECT_TRUE(told) << name;
  }
}

void EachCase::check_temperature_2() const {
  const auto& values = one().expected.values;
  if (!values.contains("logp_temperature_2")) return;
  Problem problem = one().problem();
  problem.temperature = {2};
  for (std::int64_t row = 0; row < one().rows(); ++row) {
    expect("logp_temperature_2", static_cast<std::size_t>(row),
           reference_values(problem, row).logp[0]);
  }
}

TEST_P(EachCase, HasTheReferencesNumbersAndNotTheFaults) {
  check_values();
  check_divergences();
  check_gradients();
  check_divergence_gradients();
  check_single_terms();
  check_fault();
  check_temperature_2();
}

INSTANTIATE_TEST_SUITE_P(Conformance, EachCase, testing::ValuesIn(all_cases()),
                         [](const auto& each) { return each.param.id; });

TEST(Conformance, AllCasesAreThere) { EXPECT_EQ(all_cases().size(), 54u); }

}  // namespace

/// How GoogleTest names a case in its messages.
void PrintTo(const Case& one, std::ostream* out) { *out << one.id; }

}  // namespace logpjit::tuning
