// Random tensors for timing.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/device.hpp"
#include "tuning/device_tensor.hpp"
#include "tuning/reference.hpp"

namespace logpjit::tuning {

/// As many [rows, vocab] tensors of normal random values as it takes to pass
/// the L2 cache when work goes round them; `seed` makes them differ.
std::vector<DeviceTensor> random_logits(runtime::Device& device, DType dtype,
                                        std::int64_t rows, std::int64_t vocab,
                                        unsigned seed);

/// int64 [rows], spread over the vocabulary: row's is `spread_id`.
DeviceTensor spread_ids(runtime::Device& device, std::int64_t rows,
                        std::int64_t vocab);
std::int64_t spread_id(std::int64_t row, std::int64_t vocab);

/// fp32 [rows], all the same.
DeviceTensor constant_rows(runtime::Device& device, std::int64_t rows,
                           double value);

/// The first rows of a tensor, fetched, and the reference's problem on them
/// with `spread_id` ids.
struct FetchedRows {
  std::vector<std::byte> bytes;
  Problem problem;
};
FetchedRows fetch_rows(runtime::Device& device, const DeviceTensor& logits,
                       std::int64_t rows);

}  // namespace logpjit::tuning
