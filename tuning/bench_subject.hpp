// One operation with its tensors, to be started over and over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "logpjit/kernel_spec.hpp"
#include "logpjit/runtime.hpp"
#include "tuning/accuracy.hpp"
#include "tuning/floor.hpp"

namespace logpjit::tuning {

/// What the floors of all subjects are made of.
struct Floors {
  FloorKernel read;
  FloorKernel copy;
  FloorKernel triad;

  explicit Floors(runtime::Engine& engine)
      : read(engine, "floor_read"),
        copy(engine, "floor_copy"),
        triad(engine, "floor_triad") {}
};

/// How rows and ids lie and who computes.
struct BenchVariant {
  /// When more than one, every id is there twice.
  std::int64_t ids_per_row = 1;
  bool half_ignored = false;  ///< every second row has no id (forward only)
  bool fallback = false;
  /// Rows are logits[:, :-1] of so many sequences; 0: a plain matrix.
  std::int64_t sequences = 0;
  bool operator==(const BenchVariant&) const = default;
};

/// What the rows of its calls are.
inline RowMap row_map(const BenchVariant& variant) {
  return variant.sequences > 1 ? RowMap::kStrided2 : KernelSpec{}.rows;
}

/// Owns its tensors. For one thread.
class BenchSubject {
 public:
  virtual ~BenchSubject() = default;

  /// Starts the operation; `turn` chooses the buffers.
  virtual void start(CUstream_st* stream, int turn) = 0;
  /// Moves the bytes that it cannot do without.
  virtual void start_floor(const Floors& floors, CUstream_st* stream,
                           int turn) = 0;
  /// Runs it once on the first buffers and compares some rows with float64.
  virtual Accuracy check() = 0;

  /// "1 read", "1 read, 1 write", ...
  virtual std::string_view passes() const = 0;
  /// Bytes of those passes.
  virtual std::int64_t bytes() const = 0;
  virtual int buffers() const = 0;
};

/// A subject that can be run with any kernel of its specification.
class TunableSubject : public BenchSubject {
 public:
  /// The exact specification of its calls.
  virtual const KernelSpec& spec() const = 0;
  /// From now on `start` launches this kernel, which is of `spec()`.
  virtual void use(const Kernel& kernel) = 0;
  /// Fills all that `start` writes with kPoison; or what of it is among the
  /// results.
  virtual void poison() = 0;
  virtual void poison_results() = 0;
  /// What was written for the first buffers: every value of every row, and the
  /// gradient's rows at places spread over it. Until the next time; waits for
  /// the device.
  virtual std::span<const std::byte> fetch_results() = 0;
  std::vector<std::byte> results() {
    const auto bytes = fetch_results();
    return {bytes.begin(), bytes.end()};
  }
};

/// Random logits, ids spread over the vocabulary, upstream gradients of 1.
/// Error{kUnsupported} for an operation that cannot be timed.
std::unique_ptr<BenchSubject> make_subject(Runtime& runtime,
                                           const KernelSpec& spec,
                                           std::int64_t rows,
                                           const BenchVariant& variant = {});
/// The same for what the tuner can tune; Error{kUnsupported} for the rest.
std::unique_ptr<TunableSubject> make_tunable_subject(
    Runtime& runtime, const KernelSpec& spec, std::int64_t rows,
    const BenchVariant& variant = {});

}  // namespace logpjit::tuning
