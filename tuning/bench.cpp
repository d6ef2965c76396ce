// One operation timed beside the least its bytes could take.
#include "tuning/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <span>
#include <utility>

#include "logpjit/error.hpp"
#include "logpjit/operations.hpp"
#include "runtime/engine.hpp"
#include "tuning/device_tensor.hpp"
#include "tuning/numeric.hpp"
#include "tuning/reference.hpp"

namespace logpjit::tuning {
namespace {

constexpr int kMostBuffers = 16;
constexpr std::int64_t kCheckedRows = 4;
/// A prime, so that rows do not repeat with the block.
constexpr std::size_t kRandomElements = 1048573;
constexpr unsigned kSeed = 20;
constexpr double kDeviation = 4;
constexpr std::int64_t kIdStep = 1000003;

struct Subject {
  std::vector<DeviceTensor> logits;
  DeviceTensor ids;
  DeviceTensor copy;
  std::vector<DeviceTensor> outputs;
  RowForward call;  ///< with the first logits
};

std::vector<std::byte> random_block(DType dtype) {
  std::mt19937 engine(kSeed);
  std::normal_distribution<double> normal(0, kDeviation);
  std::vector<double> values(kRandomElements);
  for (double& value : values) value = normal(engine);
  std::vector<std::byte> bytes;
  narrow_row(values, dtype, bytes);
  return bytes;
}

DeviceTensor random_logits(runtime::Device& device, DType dtype,
                           std::int64_t rows, std::int64_t vocab,
                           const std::vector<std::byte>& block) {
  const std::int64_t shape[] = {rows, vocab};
  DeviceTensor tensor = upload(device, dtype, shape, {});
  auto* to = static_cast<std::byte*>(tensor.view.data);
  for (std::size_t done = 0; done < tensor.bytes(); done += block.size()) {
    device.copy_in(to + done, block.data(),
                   std::min(block.size(), tensor.bytes() - done));
  }
  return tensor;
}

DeviceTensor spread_ids(runtime::Device& device, std::int64_t rows,
                        std::int64_t vocab) {
  std::vector<std::int64_t> ids;
  for (std::int64_t row = 0; row < rows; ++row) {
    ids.push_back(row * kIdStep % vocab);
  }
  const std::int64_t shape[] = {rows};
  return upload(device, DType::kInt64, shape,
                std::as_bytes(std::span<const std::int64_t>(ids)));
}

int buffers_for(std::int64_t bytes, std::int64_t l2_bytes) {
  constexpr std::int64_t kTimes = 4;
  const std::int64_t wanted =
      (kTimes * l2_bytes + bytes - 1) / std::max<std::int64_t>(bytes, 1);
  return static_cast<int>(std::clamp<std::int64_t>(wanted, 1, kMostBuffers));
}

constexpr std::pair<Terms, TensorView RowForward::*> kTermOutputs[] = {
    {Terms::kLogp, &RowForward::logp},
    {Terms::kEntropy, &RowForward::entropy},
    {Terms::kLse, &RowForward::lse},
    {Terms::kSquares, &RowForward::squares}};

void add_outputs(runtime::Device& device, const BenchRequest& request,
                 Subject& subject) {
  const std::int64_t shape[] = {request.rows};
  const auto add = [&](TensorView RowForward::*member, DType dtype) {
    subject.outputs.push_back(poisoned_tensor(device, dtype, shape));
    subject.call.*member = subject.outputs.back().view;
  };
  for (const auto& [term, member] : kTermOutputs) {
    if (has(request.spec.terms, term)) add(member, DType::kFp32);
  }
  if (has(request.spec.terms, Terms::kArgmax)) {
    add(&RowForward::argmax, DType::kInt64);
  }
  add(&RowForward::max, DType::kFp32);
  add(&RowForward::sum, DType::kFp32);
}

Subject make_subject(runtime::Device& device, const BenchRequest& request) {
  const KernelSpec& spec = request.spec;
  Subject subject;
  const auto block = random_block(spec.logits);
  const std::int64_t bytes = request.rows * spec.vocab *
                             static_cast<std::int64_t>(size_of(spec.logits));
  for (int i = buffers_for(bytes, device.info().l2_bytes); i > 0; --i) {
    subject.logits.push_back(
        random_logits(device, spec.logits, request.rows, spec.vocab, block));
  }
  subject.ids = spread_ids(device, request.rows, spec.vocab);
  const std::int64_t shape[] = {request.rows, spec.vocab};
  subject.copy = upload(device, spec.logits, shape, {});
  subject.call.logits = subject.logits.front().view;
  if (has(spec.terms, Terms::kLogp)) subject.call.ids = subject.ids.view;
  add_outputs(device, request, subject);
  return subject;
}

/// The first output of the last launch on the first logits.
Accuracy check(runtime::Device& device, const BenchRequest& request,
               const Subject& subject) {
  Accuracy accuracy;
  const std::int64_t rows = std::min(request.rows, kCheckedRows);
  const auto values = download_floats(device, subject.outputs.front());
  const std::int64_t row_bytes =
      request.spec.vocab *
      static_cast<std::int64_t>(size_of(request.spec.logits));
  std::vector<std::byte> logits(static_cast<std::size_t>(rows * row_bytes));
  device.copy_out(logits.data(), subject.logits.front().view.data,
                  logits.size());
  Problem problem =
      problem_of(TensorView::contiguous(logits.data(), request.spec.logits,
                                        {rows, request.spec.vocab}),
                 request.spec.vocab);
  problem.ids_per_row = 1;
  problem.id = [&](std::int64_t row, std::int64_t) {
    return row * kIdStep % request.spec.vocab;
  };
  for (std::int64_t row = 0; row < rows; ++row) {
    const RowValues right = reference_values(problem, row);
    const double by_term[] = {right.logp.front(), right.entropy, right.lse,
                              right.squares};
    for (std::size_t t = 0; t < std::size(kTermOutputs); ++t) {
      if (!has(request.spec.terms, kTermOutputs[t].first)) continue;
      accuracy.add(values[static_cast<std::size_t>(row)], by_term[t],
                   DType::kFp32);
      break;
    }
  }
  return accuracy;
}

std::string used_config(Runtime& runtime, const Subject& subject,
                        const BenchRequest& request) {
  KernelSpec spec = request.spec;
  spec.aligned = subject.call.logits.strides[0] *
                     static_cast<std::int64_t>(size_of(spec.logits)) % 16 ==
                 0;
  return runtime.kernel(spec).config(request.rows).text();
}

}  // namespace

BenchResult bench(Runtime& runtime, const BenchRequest& request) {
  const KernelSpec& spec = request.spec;
  if (spec.pass != Pass::kForward || has(spec.terms, Terms::kKl)) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("bench: {} cannot be timed", spec.op()));
  }
  runtime::Device& device = runtime.engine().device();
  Subject subject = make_subject(device, request);
  BenchResult result;
  const auto start = std::chrono::steady_clock::now();
  forward(runtime, subject.call);
  device.synchronize();
  result.prepare_ms = std::chrono::duration<double, std::milli>(
                          std::chrono::steady_clock::now() - start)
                          .count();
  result.accuracy = check(device, request, subject);
  result.config = used_config(runtime, subject, request);
  result.logits_bytes =
      static_cast<std::int64_t>(subject.logits.front().bytes());
  result.buffers = static_cast<int>(subject.logits.size());
  const auto logits = [&](int turn) -> const DeviceTensor& {
    return subject
        .logits[static_cast<std::size_t>(turn) % subject.logits.size()];
  };
  const Work works[] = {[&](CUstream_st* stream, int turn) {
                          RowForward call = subject.call;
                          call.logits = logits(turn).view;
                          forward(runtime, call, stream);
                        },
                        [&](CUstream_st* stream, int turn) {
                          device.copy(subject.copy.view.data,
                                      logits(turn).view.data,
                                      subject.copy.bytes(), stream);
                        }};
  const auto timings = measure(device, works, request.measure);
  result.operation = timings[0];
  result.copy = timings[1];
  return result;
}

}  // namespace logpjit::tuning
