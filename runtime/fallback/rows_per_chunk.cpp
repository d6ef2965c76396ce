// How many rows one launch of the fallback takes.
#include "runtime/fallback/rows_per_chunk.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/operations/check.hpp"

namespace logpjit::runtime {

std::int64_t chunk_budget(DeviceKind kind) {
  return std::int64_t{1} << (kind == DeviceKind::kCuda ? 27 : 24);
}

std::int64_t rows_in_budget(std::int64_t vocab, std::int64_t budget) {
  return std::max<std::int64_t>(budget / std::max<std::int64_t>(vocab, 1), 1);
}

void check_rows_of_chunk(std::string_view op, std::int64_t asked) {
  if (asked >= 1) return;
  refuse(op, "chunk_rows",
         fmt::format("{} is not above 0; leave it out for the default", asked));
}

std::int64_t rows_per_chunk(DeviceKind kind, std::int64_t vocab,
                            std::optional<std::int64_t> asked) {
  return asked ? *asked : rows_in_budget(vocab, chunk_budget(kind));
}

}  // namespace logpjit::runtime
