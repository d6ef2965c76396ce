// One operation timed beside the least its bytes could take.
#pragma once

#include <cstdint>
#include <string>

#include "logpjit/kernel_spec.hpp"
#include "logpjit/runtime.hpp"
#include "tuning/accuracy.hpp"
#include "tuning/measure.hpp"

namespace logpjit::tuning {

struct BenchRequest {
  KernelSpec spec;  ///< terms, dtypes and vocab; forward
  std::int64_t rows = 0;
  MeasureOptions measure;
};

struct BenchResult {
  std::string config;             ///< of the launch
  std::int64_t logits_bytes = 0;  ///< read once by the operation
  int buffers = 1;                ///< sets gone round, to pass the L2 cache
  double prepare_ms = 0;          ///< compile or read, and load
  Timing operation;
  Timing copy;        ///< of the logits to another buffer: one read, one write
  Accuracy accuracy;  ///< of the first output, on a few rows
  double to_copy() const { return operation.median_ms / copy.median_ms; }
};

/// Times all in one run, in turn. The logits are random; ids are spread over
/// the vocabulary. Error{kUnsupported} for what is not a forward.
BenchResult bench(Runtime& runtime, const BenchRequest& request);

}  // namespace logpjit::tuning
