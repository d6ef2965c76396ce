// One operation timed beside the least its bytes could take.
#include "tuning/bench.hpp"

#include <fmt/format.h>

#include <chrono>

#include "logpjit/error.hpp"
#include "runtime/engine.hpp"
#include "tuning/bench_kl.hpp"
#include "tuning/bench_rows.hpp"
#include "tuning/bench_subject.hpp"
#include "tuning/device_tensor.hpp"

namespace logpjit::tuning {

std::unique_ptr<BenchSubject> make_subject(Runtime& runtime,
                                           const KernelSpec& spec,
                                           std::int64_t rows) {
  if (!has(spec.terms, Terms::kKl)) {
    return make_row_subject(runtime, spec, rows);
  }
  if (spec.pass != Pass::kWithGrad) {
    return make_kl_subject(runtime, spec, rows);
  }
  throw Error(ErrorCode::kUnsupported,
              fmt::format("{} cannot be timed: no operation computes it; time "
                          "kl and kl_backward",
                          spec.op()));
}

BenchResult bench(Runtime& runtime, const BenchRequest& request) {
  runtime::Device& device = runtime.engine().device();
  const auto subject = make_subject(runtime, request.spec, request.rows);
  BenchResult result;
  const auto start = std::chrono::steady_clock::now();
  subject->start(nullptr, 0);
  device.synchronize();
  result.prepare_ms = std::chrono::duration<double, std::milli>(
                          std::chrono::steady_clock::now() - start)
                          .count();
  result.accuracy = subject->check();
  result.passes = subject->passes();
  result.bytes = subject->bytes();
  result.buffers = subject->buffers();

  const Floors floors(runtime.engine());
  const std::int64_t shape[] = {request.rows, request.spec.vocab};
  const DeviceTensor from = poisoned_tensor(device, request.spec.logits, shape);
  const DeviceTensor to = poisoned_tensor(device, request.spec.logits, shape);
  result.copy_bytes = 2 * static_cast<std::int64_t>(from.bytes());
  const Work works[] = {
      [&](CUstream_st* stream, int turn) { subject->start(stream, turn); },
      [&](CUstream_st* stream, int turn) {
        subject->start_floor(floors, stream, turn);
      },
      [&](CUstream_st* stream, int) {
        device.copy(to.view.data, from.view.data, from.bytes(), stream);
      }};
  const auto timings = measure(device, works, request.measure);
  result.operation = timings[0];
  result.floor = timings[1];
  result.copy = timings[2];
  return result;
}

}  // namespace logpjit::tuning
