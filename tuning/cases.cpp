// What a conformance case says of itself.
#include "tuning/cases.hpp"

#include <algorithm>

namespace logpjit::tuning {
namespace {

Problem problem_from(const Case& one, const LogitsPattern& pattern) {
  Problem problem;
  problem.rows = one.rows();
  problem.logits = [pattern](std::int64_t row, std::vector<double>& values) {
    pattern.row(row, values);
  };
  problem.ids_per_row = one.has_ids ? one.ids_per_row : 0;
  problem.id = [ids = one.ids](std::int64_t row, std::int64_t k) {
    return ids.at(row, k);
  };
  problem.temperature = one.temperature;
  problem.row_mask = one.row_mask;
  return problem;
}

std::vector<double> flattened(const Case& one, std::string_view name) {
  std::vector<double> result;
  const auto found = one.gradients.find(std::string(name));
  if (found == one.gradients.end()) return result;
  for (std::int64_t n = 0; n < found->second.count(); ++n) {
    result.push_back(found->second.at(n));
  }
  return result;
}

}  // namespace

std::int64_t Case::rows() const {
  std::int64_t product = 1;
  for (std::size_t d = 0; d + 1 < shape.size(); ++d) product *= shape[d];
  return product;
}

std::int64_t Case::extent() const {
  std::int64_t last = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return 0;
    last += (shape[d] - 1) * strides[d];
  }
  return last + 1;
}

std::int64_t Case::storage_elements() const {
  return layout ? layout->storage_elements : extent();
}

bool Case::asks(std::string_view part) const {
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

bool Case::wants_gradient() const {
  return std::any_of(parts.begin(), parts.end(), [](const std::string& part) {
    return part.ends_with("bwd");
  });
}

Problem Case::problem() const { return problem_from(*this, logits); }

Problem Case::teacher_problem() const { return problem_from(*this, *teacher); }

Upstream Case::upstream() const {
  Upstream result;
  result.logp = flattened(*this, "grad_out");
  if (result.logp.empty()) result.logp = flattened(*this, "grad_logp");
  result.entropy = flattened(*this, "grad_entropy");
  return result;
}

}  // namespace logpjit::tuning
