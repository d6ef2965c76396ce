// Row operations (logp, entropy, ...) to be timed.
#include "tuning/bench_rows.hpp"

#include <algorithm>
#include <utility>

#include "logpjit/error.hpp"
#include "logpjit/operations.hpp"
#include "runtime/engine.hpp"
#include "tuning/bench_data.hpp"

namespace logpjit::tuning {
namespace {

constexpr std::int64_t kCheckedRows = 4;
constexpr unsigned kSeed = 20;

struct TermRow {
  Terms term;
  TensorView RowForward::*output;
  TensorView logpjit::Upstream::*upstream;
};
constexpr TermRow kTerms[] = {
    {Terms::kLogp, &RowForward::logp, &logpjit::Upstream::logp},
    {Terms::kEntropy, &RowForward::entropy, &logpjit::Upstream::entropy},
    {Terms::kLse, &RowForward::lse, &logpjit::Upstream::lse},
    {Terms::kSquares, &RowForward::squares, &logpjit::Upstream::squares}};

class RowSubject final : public TunableSubject {
 public:
  RowSubject(Runtime& runtime, const KernelSpec& spec, std::int64_t rows,
             const BenchVariant& variant);

  void start(CUstream_st* stream, int turn) override;
  void start_floor(const Floors& floors, CUstream_st* stream,
                   int turn) override;
  Accuracy check() override;
  std::string_view passes() const override {
    if (ids_of_rows_.half_ignored) return "1 read of half the rows";
    return has_gradient() ? "1 read, 1 write" : "1 read";
  }
  std::int64_t bytes() const override {
    if (ids_of_rows_.half_ignored) return logits_bytes() / 2;
    return logits_bytes() * (has_gradient() ? 2 : 1);
  }
  int buffers() const override { return static_cast<int>(logits_.size()); }
  const KernelSpec& spec() const override { return spec_; }
  void use(const Kernel& kernel) override { kernel_ = kernel; }
  void poison() override;
  void poison_results() override { watched_.poison(); }
  std::span<const std::byte> fetch_results() override {
    return watched_.fetch();
  }

 private:
  bool has_gradient() const { return spec_.pass != Pass::kForward; }
  std::int64_t logits_bytes() const {
    return rows_ * spec_.vocab *
           static_cast<std::int64_t>(size_of(spec_.logits));
  }
  TensorView add_output(DType dtype, std::int64_t per_row = 1);
  Accuracy check_values(const Problem& problem);
  Accuracy check_gradient(const Problem& problem);

  Runtime& runtime_;
  runtime::Device& device_;
  KernelSpec spec_;
  std::int64_t rows_;
  SpreadIds ids_of_rows_;
  SequenceRows sequences_;
  std::vector<DeviceTensor> logits_;
  DeviceTensor ids_;
  DeviceTensor ones_;
  DeviceTensor gradient_;
  std::vector<DeviceTensor> outputs_;  ///< in the order of kTerms
  WatchedBytes watched_{device_};
  RowWithGrad call_;
  Kernel kernel_;  ///< empty: the runtime chooses
};

RowSubject::RowSubject(Runtime& runtime, const KernelSpec& spec,
                       std::int64_t rows, const BenchVariant& variant)
    : runtime_(runtime),
      device_(runtime.engine().device()),
      spec_(spec),
      rows_(rows),
      ids_of_rows_{spec.vocab, variant.ids_per_row, variant.half_ignored},
      sequences_{variant.sequences},
      logits_(random_logits(device_, spec.logits, rows + variant.sequences,
                            spec.vocab, kSeed)),
      ids_(spread_ids(device_, rows, ids_of_rows_)),
      ones_(constant_rows(device_, rows, 1)) {
  if (variant.half_ignored && has_gradient()) {
    throw Error(ErrorCode::kUnsupported,
                "ignored rows are timed in a forward only: a gradient is "
                "written for them too");
  }
  if (variant.sequences > 0 && variant.ids_per_row > 1) {
    throw Error(ErrorCode::kUnsupported,
                "sequences are timed with one id a row");
  }
  sequences_.check(rows);
  // What the calls below are, whatever else was asked for.
  spec_ = KernelSpec{.terms = spec.terms,
                     .pass = spec.pass,
                     .logits = spec.logits,
                     .vocab = spec.vocab,
                     .many_ids = variant.ids_per_row > 1,
                     .rows = row_map(variant),
                     .aligned = starts_aligned(logits_.front())};
  call_.values.logits = sequences_.matrix(logits_.front().view);
  call_.values.options.fallback = variant.fallback;
  if (has(spec.terms, Terms::kLogp)) {
    call_.values.ids = sequences_.vector(ids_.view);
  }
  for (const TermRow& row : kTerms) {
    if (!has(spec.terms, row.term)) continue;
    const bool by_id = row.term == Terms::kLogp && variant.ids_per_row > 1;
    TensorView ones = sequences_.vector(ones_.view);
    if (by_id) {
      ones.rank = 2;
      ones.shape[1] = variant.ids_per_row;
      ones.strides[1] = 0;
    }
    call_.values.*row.output =
        add_output(DType::kFp32, by_id ? variant.ids_per_row : 1);
    call_.upstream.*row.upstream = ones;
  }
  if (has(spec.terms, Terms::kArgmax)) {
    call_.values.argmax = add_output(DType::kInt64);
  }
  call_.values.max = add_output(DType::kFp32);
  call_.values.sum = add_output(DType::kFp32);
  // A backward reads the values; they are none of its results.
  if (spec_.pass != Pass::kBackward) watched_.add_all(outputs_);
  if (!has_gradient()) return;
  const std::int64_t shape[] = {rows + variant.sequences, spec.vocab};
  gradient_ = poisoned_tensor(device_, spec.logits, shape);
  watched_.add_sampled_rows(gradient_);
  call_.gradient.tensor = sequences_.matrix(gradient_.view);
  if (spec.pass == Pass::kBackward) forward(runtime, call_.values);
}

TensorView RowSubject::add_output(DType dtype, std::int64_t per_row) {
  std::vector<std::int64_t> shape{rows_};
  if (per_row > 1) shape.push_back(per_row);
  outputs_.push_back(poisoned_tensor(device_, dtype, shape));
  const TensorView& view = outputs_.back().view;
  return per_row > 1 ? view : sequences_.vector(view);
}

void RowSubject::start(CUstream_st* stream, int turn) {
  RowWithGrad call = call_;
  call.values.logits = sequences_.matrix(
      logits_[static_cast<std::size_t>(turn) % logits_.size()].view);
  switch (spec_.pass) {
    default:
    case Pass::kForward:
      return kernel_ ? launch(kernel_, call.values, stream)
                     : forward(runtime_, call.values, stream);
    case Pass::kWithGrad:
      return kernel_ ? launch(kernel_, call, stream)
                     : forward_with_grad(runtime_, call, stream);
    case Pass::kBackward:
      const RowBackward gradient{.logits = call.values.logits,
                                 .ids = call.values.ids,
                                 .max = call.values.max,
                                 .sum = call.values.sum,
                                 .entropy = call.values.entropy,
                                 .squares = call.values.squares,
                                 .upstream = call.upstream,
                                 .gradient = call.gradient,
                                 .options = call.values.options};
      return kernel_ ? launch(kernel_, gradient, stream)
                     : backward(runtime_, gradient, stream);
  }
}

void RowSubject::poison() {
  if (spec_.pass != Pass::kBackward) poison_all(device_, outputs_);
  if (has_gradient()) poison_all(device_, {&gradient_, 1});
}

void RowSubject::start_floor(const Floors& floors, CUstream_st* stream,
                             int turn) {
  const void* from =
      logits_[static_cast<std::size_t>(turn) % logits_.size()].view.data;
  if (has_gradient()) {
    floors.copy.launch(stream, from, nullptr, gradient_.view.data,
                       logits_bytes());
  } else {
    floors.read.launch(stream, from, nullptr, nullptr, bytes());
  }
}

Accuracy RowSubject::check_values(const Problem& problem) {
  const auto values = download_floats(device_, outputs_.front());
  return accuracy_of_rows(
      problem.rows, [&](std::int64_t row, Accuracy& accuracy) {
        const RowValues right = reference_values(problem, row);
        const double by_term[] = {right.logp.front(), right.entropy, right.lse,
                                  right.squares};
        for (std::size_t t = 0; t < std::size(kTerms); ++t) {
          if (!has(spec_.terms, kTerms[t].term)) continue;
          const std::int64_t width =
              kTerms[t].term == Terms::kLogp ? ids_of_rows_.per_row : 1;
          accuracy.add(values[static_cast<std::size_t>(row * width)],
                       by_term[t], DType::kFp32);
          break;
        }
      });
}

Accuracy RowSubject::check_gradient(const Problem& problem) {
  const auto count = static_cast<std::size_t>(problem.rows);
  Upstream upstream;
  std::vector<double>* terms[] = {&upstream.logp, &upstream.entropy,
                                  &upstream.lse, &upstream.squares};
  for (std::size_t t = 0; t < std::size(kTerms); ++t) {
    if (has(spec_.terms, kTerms[t].term)) terms[t]->assign(count, 1);
  }
  if (!upstream.logp.empty()) {
    upstream.logp.assign(count * static_cast<std::size_t>(ids_of_rows_.per_row),
                         1);
  }
  const FetchedRows gradient =
      fetch_rows(device_, gradient_, problem.rows, ids_of_rows_);
  return accuracy_of_rows(
      problem.rows, [&](std::int64_t row, Accuracy& accuracy) {
        const auto right = reference_gradient(problem, upstream, row);
        std::vector<double> values;
        gradient.problem.logits(row, values);
        for (std::size_t j = 0; j < right.size(); ++j) {
          accuracy.add(values[j], right[j], spec_.logits);
        }
      });
}

Accuracy RowSubject::check() {
  start(nullptr, 0);
  device_.synchronize();
  const FetchedRows fetched = fetch_rows(
      device_, logits_.front(),
      std::min(sequences_.together(rows_), kCheckedRows), ids_of_rows_);
  return has_gradient() ? check_gradient(fetched.problem)
                        : check_values(fetched.problem);
}

}  // namespace

std::unique_ptr<TunableSubject> make_row_subject(Runtime& runtime,
                                                 const KernelSpec& spec,
                                                 std::int64_t rows,
                                                 const BenchVariant& variant) {
  return std::make_unique<RowSubject>(runtime, spec, rows, variant);
}

}  // namespace logpjit::tuning
