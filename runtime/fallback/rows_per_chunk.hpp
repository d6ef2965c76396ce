// How many rows one launch of the fallback takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "logpjit/device.hpp"

namespace logpjit::runtime {

/// Logits of one launch: 2^27 on a GPU, 2^24 on a CPU.
std::int64_t chunk_budget(DeviceKind kind);

/// max(1, budget div vocab).
std::int64_t rows_in_budget(std::int64_t vocab, std::int64_t budget);

/// Error{kInvalidArgument} naming `chunk_rows` unless it is above 0.
void check_rows_of_chunk(std::string_view op, std::int64_t asked);

/// `asked`, or what the budget allows when it is absent; at least one row.
std::int64_t rows_per_chunk(DeviceKind kind, std::int64_t vocab,
                            std::optional<std::int64_t> asked);

}  // namespace logpjit::runtime
