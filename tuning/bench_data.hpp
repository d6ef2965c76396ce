// Random tensors for timing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
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

/// Ids spread over the vocabulary; with several a row every one is there twice,
/// and every second row may have none (-100).
struct SpreadIds {
  std::int64_t vocab = 1;
  std::int64_t per_row = 1;
  bool half_ignored = false;

  std::int64_t id(std::int64_t row, std::int64_t k) const;
};
/// int64 [rows], or [rows, per_row] when there are several.
DeviceTensor spread_ids(runtime::Device& device, std::int64_t rows,
                        const SpreadIds& ids);

/// fp32 [rows], all the same.
DeviceTensor constant_rows(runtime::Device& device, std::int64_t rows,
                           double value);

/// Rows as a trainer has them: all of every sequence but its last.
struct SequenceRows {
  std::int64_t sequences = 0;  ///< 0: a plain matrix

  /// Error{kInvalidArgument} when `rows` are not as many in each.
  void check(std::int64_t rows) const;
  /// How many of `rows` lie one after the other.
  std::int64_t together(std::int64_t rows) const {
    return sequences == 0 ? rows : rows / sequences;
  }
  /// Of a contiguous [rows + sequences, vocab]: [sequences, length - 1, vocab].
  TensorView matrix(const TensorView& matrix) const;
  /// Of a contiguous [rows]: [sequences, rows / sequences].
  TensorView vector(const TensorView& vector) const;
};

/// The first rows of a tensor, fetched, and the reference's problem on them
/// with these ids.
struct FetchedRows {
  std::vector<std::byte> bytes;
  Problem problem;
};
FetchedRows fetch_rows(runtime::Device& device, const DeviceTensor& logits,
                       std::int64_t rows, const SpreadIds& ids = {});

/// Whether rows of a contiguous matrix start at multiples of 16 bytes.
bool starts_aligned(const DeviceTensor& matrix);

void poison_all(runtime::Device& device, std::span<const DeviceTensor> tensors);

/// What is looked at of the results of a run, over and over: poisoned before,
/// fetched after. The tensors must outlive it.
class WatchedBytes {
 public:
  explicit WatchedBytes(runtime::Device& device) : device_(device) {}

  void add_all(std::span<const DeviceTensor> tensors);
  /// At most 16 rows spread over a matrix, the first and the last among them.
  void add_sampled_rows(const DeviceTensor& matrix);

  void poison();
  /// One after the other, until the next time. Waits for the device.
  std::span<const std::byte> fetch();

 private:
  runtime::Device& device_;
  std::vector<std::span<std::byte>> parts_;  ///< of the device's memory
  std::size_t bytes_ = 0;
  std::unique_ptr<runtime::Buffer> fetched_;
};

}  // namespace logpjit::tuning
