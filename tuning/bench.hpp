// One operation timed beside the least its bytes could take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "logpjit/kernel_spec.hpp"
#include "logpjit/runtime.hpp"
#include "tuning/accuracy.hpp"
#include "tuning/bench_subject.hpp"
#include "tuning/measure.hpp"

namespace logpjit::tuning {

struct BenchRequest {
  KernelSpec spec;  ///< terms, pass, dtypes and vocab
  std::int64_t rows = 0;
  BenchVariant variant{};
  /// Columns of the baseline; absent = those of `spec`.
  std::optional<std::int64_t> baseline_vocab{};
  MeasureOptions measure{};

  /// The plain call that this one is compared with in the same rounds: one id
  /// a row, none ignored, specialised kernels. Nothing when it is that itself.
  std::optional<KernelSpec> baseline() const;
};

struct BenchResult {
  std::string passes;      ///< "1 read, 1 write": what `bytes` counts
  std::int64_t bytes = 0;  ///< least that must be read and written
  int buffers = 1;         ///< sets gone round, to pass the L2 cache
  double prepare_ms = 0;   ///< compile or read, load, and the first run
  Timing operation;
  Timing floor;  ///< plain kernels over the same bytes
  Timing copy;   ///< the driver's copy of the logits: one read, one write
  std::int64_t copy_bytes = 0;
  std::optional<Timing> baseline;
  /// Device memory that went while the operation ran, its tensors aside.
  std::int64_t peak_workspace = 0;
  std::string config;  ///< what was launched; empty: several kernels
  ConfigSource config_source = ConfigSource::kDefault;
  bool image_cached = false;  ///< of what was launched
  std::string throttling;     ///< as ThrottleWatch::text
  Accuracy accuracy;  ///< of the first output or the gradient, on a few rows

  double to_baseline() const {
    return operation.median_ms / baseline->median_ms;
  }
  double to_floor() const { return operation.median_ms / floor.median_ms; }
};

/// Times all in one run, in turn.
BenchResult bench(Runtime& runtime, const BenchRequest& request);

}  // namespace logpjit::tuning
