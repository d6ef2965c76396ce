// One operation timed beside the least its bytes could take.
#include "tuning/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "logpjit/error.hpp"
#include "runtime/engine.hpp"
#include "runtime/launch_table.hpp"
#include "tuning/bench_kl.hpp"
#include "tuning/bench_rows.hpp"
#include "tuning/bench_subject.hpp"
#include "tuning/device_tensor.hpp"

namespace logpjit::tuning {

std::unique_ptr<BenchSubject> make_subject(Runtime& runtime,
                                           const KernelSpec& spec,
                                           std::int64_t rows,
                                           const BenchVariant& variant) {
  return make_tunable_subject(runtime, spec, rows, variant);
}

std::unique_ptr<TunableSubject> make_tunable_subject(
    Runtime& runtime, const KernelSpec& spec, std::int64_t rows,
    const BenchVariant& variant) {
  if (!has(spec.terms, Terms::kKl)) {
    return make_row_subject(runtime, spec, rows, variant);
  }
  if (spec.pass != Pass::kWithGrad) {
    return make_kl_subject(runtime, spec, rows, variant);
  }
  throw Error(ErrorCode::kUnsupported,
              fmt::format("{} cannot be timed: no operation computes it; time "
                          "kl and kl_backward",
                          spec.op()));
}

namespace {

/// Which configuration was launched; nothing where it took several kernels, or
/// the fallback.
void note_config(Runtime& runtime, const BenchSubject& subject,
                 const BenchRequest& request, BenchResult& result) {
  const auto* one = dynamic_cast<const TunableSubject*>(&subject);
  if (one == nullptr || request.variant.fallback ||
      (one->spec().pass == Pass::kWithGrad &&
       !runtime::fits_on_chip(one->spec(), runtime.device()))) {
    return;
  }
  const Kernel kernel = runtime.kernel(one->spec());
  result.config = kernel.config(request.rows).text();
  result.config_source = kernel.config_source(request.rows);
  result.image_cached =
      kernel.program().variant(request.rows).origin != cache::Origin::kCompiled;
}

/// The least free memory that is seen while the operation runs, against before.
std::int64_t peak_workspace(runtime::Device& device, BenchSubject& subject) {
  constexpr int kReadings = 50;
  const std::size_t before = device.free_bytes();
  std::size_t least = before;
  subject.start(nullptr, 0);
  for (int i = 0; i < kReadings; ++i) {
    least = std::min(least, device.free_bytes());
  }
  device.synchronize();
  return static_cast<std::int64_t>(before - least);
}

}  // namespace

std::optional<KernelSpec> BenchRequest::baseline() const {
  KernelSpec plain = spec;
  plain.vocab = baseline_vocab.value_or(spec.vocab);
  if (plain == spec && variant == BenchVariant{}) return std::nullopt;
  return plain;
}

BenchResult bench(Runtime& runtime, const BenchRequest& request) {
  runtime::Device& device = runtime.engine().device();
  const auto subject =
      make_subject(runtime, request.spec, request.rows, request.variant);
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
  note_config(runtime, *subject, request, result);
  // Memory of a CPU is everybody's.
  if (device.info().id.kind == DeviceKind::kCuda) {
    result.peak_workspace = peak_workspace(device, *subject);
  }
  std::unique_ptr<BenchSubject> baseline;
  if (const auto plain = request.baseline()) {
    baseline = make_subject(runtime, *plain, request.rows);
    baseline->start(nullptr, 0);
  }

  const Floors floors(runtime.engine());
  const std::int64_t shape[] = {request.rows, request.spec.vocab};
  const DeviceTensor from = poisoned_tensor(device, request.spec.logits, shape);
  const DeviceTensor to = poisoned_tensor(device, request.spec.logits, shape);
  result.copy_bytes = 2 * static_cast<std::int64_t>(from.bytes());
  const Work floor = [&](CUstream_st* stream, int turn) {
    subject->start_floor(floors, stream, turn);
  };
  // Whoever comes first after a copy pays for it: a floor that is not counted.
  std::vector<Work> works = {
      [&](CUstream_st* stream, int) {
        device.copy(to.view.data, from.view.data, from.bytes(), stream);
      },
      floor, floor,
      [&](CUstream_st* stream, int turn) { subject->start(stream, turn); }};
  if (baseline) {
    works.emplace_back(
        [&](CUstream_st* stream, int turn) { baseline->start(stream, turn); });
  }
  const auto clock = device.make_clock_meter();
  ThrottleWatch watch(clock.get(), request.measure.rounds);
  const auto timings = measure(device, works, request.measure, watch);
  result.throttling = watch.text();
  result.copy = timings[0];
  result.floor = timings[2];
  result.operation = timings[3];
  if (baseline) result.baseline = timings[4];
  return result;
}

}  // namespace logpjit::tuning
