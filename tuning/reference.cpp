// The float64 reference over whole tensors: what every kernel is checked
// against.
#include "tuning/reference.hpp"

#include <cstring>

#include "tuning/numeric.hpp"

namespace logpjit::tuning {
namespace {

/// Element offset of the n-th index in row-major order of the dimensions before
/// the last `trailing` ones.
std::int64_t offset_of(const TensorView& view, std::int64_t n, int trailing) {
  std::int64_t offset = 0;
  for (int d = view.rank - trailing - 1; d >= 0; --d) {
    const auto i = static_cast<std::size_t>(d);
    offset += (n % view.shape[i]) * view.strides[i];
    n /= view.shape[i];
  }
  return offset;
}

const std::byte* element(const TensorView& view, std::int64_t offset) {
  return static_cast<const std::byte*>(view.data) +
         offset * static_cast<std::int64_t>(size_of(view.dtype));
}

double one_of(const std::vector<double>& values, std::int64_t row) {
  return values.empty() ? 0 : values[static_cast<std::size_t>(row)];
}

std::vector<std::int64_t> row_ids(const Problem& problem, std::int64_t row) {
  std::vector<std::int64_t> ids;
  ids.reserve(static_cast<std::size_t>(problem.ids_per_row));
  for (std::int64_t k = 0; k < problem.ids_per_row; ++k) {
    ids.push_back(problem.id(row, k));
  }
  return ids;
}

RowUpstream row_upstream(const Problem& problem, const Upstream& upstream,
                         std::int64_t row) {
  RowUpstream result;
  if (!upstream.logp.empty()) {
    result.ids = row_ids(problem, row);
    const auto first = upstream.logp.begin() + row * problem.ids_per_row;
    result.logp.assign(first, first + problem.ids_per_row);
  }
  result.entropy = one_of(upstream.entropy, row);
  result.lse = one_of(upstream.lse, row);
  result.squares = one_of(upstream.squares, row);
  return result;
}

}  // namespace

Distribution Problem::distribution(std::int64_t row) const {
  std::vector<double> values;
  logits(row, values);
  RowTransform transform{softcap, 1};
  if (temperature.size() == 1) {
    transform.temperature = temperature[0];
  } else if (!temperature.empty()) {
    transform.temperature = temperature[static_cast<std::size_t>(row)];
  }
  return Distribution(Row(std::move(values), transform));
}

Problem problem_of(const TensorView& logits, std::int64_t vocab) {
  Problem problem;
  problem.rows = logits.leading(1);
  problem.logits = [logits, vocab](std::int64_t row,
                                   std::vector<double>& values) {
    widen_row(element(logits, offset_of(logits, row, 1)), logits.dtype, vocab,
              logits.strides[static_cast<std::size_t>(logits.rank - 1)],
              values);
  };
  return problem;
}

std::vector<std::int64_t> read_ids(const TensorView& ids) {
  std::vector<std::int64_t> result;
  const std::int64_t count = ids.leading();
  result.reserve(static_cast<std::size_t>(count));
  for (std::int64_t n = 0; n < count; ++n) {
    const std::byte* from = element(ids, offset_of(ids, n, 0));
    std::int64_t wide = 0;
    std::int32_t narrow_id = 0;
    if (ids.dtype == DType::kInt64) {
      std::memcpy(&wide, from, sizeof wide);
    } else {
      std::memcpy(&narrow_id, from, sizeof narrow_id);
      wide = narrow_id;
    }
    result.push_back(wide);
  }
  return result;
}

void set_ids(Problem& problem, std::vector<std::int64_t> ids,
             std::int64_t ids_per_row) {
  problem.ids_per_row = ids_per_row;
  problem.id = [list = std::move(ids), ids_per_row](std::int64_t row,
                                                    std::int64_t k) {
    return list[static_cast<std::size_t>(row * ids_per_row + k)];
  };
}

RowValues reference_values(const Problem& problem, std::int64_t row) {
  RowValues result;
  if (problem.ignored(row)) {
    result.logp.assign(static_cast<std::size_t>(problem.ids_per_row), 0);
    return result;
  }
  const Distribution side = problem.distribution(row);
  for (std::int64_t id : row_ids(problem, row)) {
    result.logp.push_back(row_logp(side.row, side.statistics, id));
  }
  result.statistics = side.statistics;
  result.entropy = side.statistics.entropy;
  result.lse = side.statistics.lse();
  result.squares = side.statistics.squares;
  return result;
}

std::vector<double> reference_gradient(const Problem& problem,
                                       const Upstream& upstream,
                                       std::int64_t row) {
  const Distribution side = problem.distribution(row);
  RowUpstream terms;
  if (!problem.ignored(row)) terms = row_upstream(problem, upstream, row);
  return row_gradient(side.row, side.statistics, terms);
}

}  // namespace logpjit::tuning
