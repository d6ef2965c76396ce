// Picking a variant by row count, and launching it.
#include "runtime/program.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "logpjit/error.hpp"

namespace logpjit::runtime {

const Variant& Program::variant(std::int64_t rows) const {
  for (const Variant& candidate : variants_) {
    if (rows <= candidate.max_rows) return candidate;
  }
  return variants_.back();
}

void Program::launch_bytes(std::int64_t rows, CUstream_st* stream,
                           const void* arguments, std::size_t bytes) const {
  const Variant& chosen = variant(rows);
  if (rows > chosen.most_rows && !chosen.persistent) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: {} rows need more than 2^31 - 1 blocks; split "
                            "the call",
                            spec_.op(), rows));
  }
  LaunchShape shape = chosen.shape;
  shape.grid *= static_cast<std::uint32_t>(std::min(rows, chosen.most_rows));
  if (use_ != nullptr) use_->count(spec_, chosen.source, rows);
  device_.launch(*chosen.function, shape, stream, arguments, bytes);
}

}  // namespace logpjit::runtime
