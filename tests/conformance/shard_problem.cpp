// Running ranks, one call after the other or around a group.
#include "tests/conformance/shard_problem.hpp"

#include <algorithm>
#include <limits>

#include "runtime/engine.hpp"

namespace logpjit::tests {
namespace {

using tuning::DeviceTensor;

/// Device memory of one rank's row operations.
struct RowMemory {
  DeviceTensor logits, ids, gradient;
  DeviceTensor up_logp, up_entropy, up_lse, up_squares;
  Values out;
  RowForward forward;
  RowBackward backward;
};

DeviceTensor send_per_id(runtime::Device& device,
                         const std::vector<float>& values,
                         std::int64_t per_row) {
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(values.size()) /
                                  per_row};
  if (per_row > 1) shape.push_back(per_row);
  return tuning::upload(device, DType::kFp32, shape,
                        std::as_bytes(std::span(values)));
}

void wire(RowMemory& memory, const ShardProblem& problem) {
  RowForward& call = memory.forward;
  call.logits = memory.logits.view;
  call.transform.temperature = problem.temperature;
  call.max = memory.out.max.view;
  call.sum = memory.out.sum.view;
  RowBackward& back = memory.backward;
  if (has(problem.terms, Terms::kLogp)) {
    call.ids = memory.ids.view;
    call.logp = memory.out.logp.view;
    back.upstream.logp = memory.up_logp.view;
  }
  if (has(problem.terms, Terms::kEntropy)) {
    call.entropy = memory.out.entropy.view;
    back.upstream.entropy = memory.up_entropy.view;
  }
  if (has(problem.terms, Terms::kLse)) {
    call.lse = memory.out.lse.view;
    back.upstream.lse = memory.up_lse.view;
  }
  if (has(problem.terms, Terms::kSquares)) {
    call.squares = memory.out.squares.view;
    back.upstream.squares = memory.up_squares.view;
  }
  back.logits = call.logits;
  back.ids = call.ids;
  back.transform = call.transform;
  back.max = call.max;
  back.sum = call.sum;
  back.entropy = call.entropy;
  back.squares = call.squares;
  back.gradient.tensor = memory.gradient.view;
}

RowMemory make_memory(runtime::Device& device, const ShardProblem& problem,
                      const HostMatrix& columns) {
  HostMatrix poison = columns;
  std::fill(poison.values.begin(), poison.values.end(), 77.0);
  RowMemory memory{send(device, columns),
                   send_ids(device, problem.ids, problem.ids_per_row),
                   send(device, poison),
                   send_per_id(device, problem.up_logp, problem.ids_per_row),
                   send(device, problem.up_entropy),
                   send(device, problem.up_lse),
                   send(device, problem.up_squares),
                   poisoned_values(device, columns.rows, problem.ids_per_row),
                   {},
                   {}};
  wire(memory, problem);
  return memory;
}

std::vector<float> floats(runtime::Device& device, const TensorView& asked,
                          const DeviceTensor& tensor) {
  if (!asked.given()) return {};
  return tuning::download_floats(device, tensor);
}

RankResult read(runtime::Device& device, const RowMemory& memory) {
  device.synchronize();
  const RowForward& call = memory.forward;
  RankResult result;
  result.logp = floats(device, call.logp, memory.out.logp);
  result.entropy = floats(device, call.entropy, memory.out.entropy);
  result.lse = floats(device, call.lse, memory.out.lse);
  result.squares = floats(device, call.squares, memory.out.squares);
  result.max = floats(device, call.max, memory.out.max);
  result.sum = floats(device, call.sum, memory.out.sum);
  result.gradient = fetch(device, memory.gradient);
  return result;
}

/// Device memory of one rank's divergence.
struct KlMemory {
  DeviceTensor student, teacher, upstream;
  DeviceTensor student_gradient, teacher_gradient;
  DeviceTensor kl, student_max, student_sum, teacher_max, teacher_sum;
  KlForward forward;
  KlBackward backward;
};

KlMemory make_memory(runtime::Device& device, const KlProblem& problem,
                     const HostMatrix& student, const HostMatrix& teacher) {
  HostMatrix poison = student;
  std::fill(poison.values.begin(), poison.values.end(), 77.0);
  const auto rows = [&] {
    return tuning::poisoned_tensor(device, DType::kFp32,
                                   std::vector{student.rows});
  };
  KlMemory memory{send(device, student),
                  send(device, teacher),
                  send(device, problem.upstream),
                  send(device, poison),
                  send(device, poison),
                  rows(),
                  rows(),
                  rows(),
                  rows(),
                  rows(),
                  {},
                  {}};
  memory.forward = {.inputs = {.student = memory.student.view,
                               .teacher = memory.teacher.view,
                               .direction = problem.direction},
                    .kl = memory.kl.view,
                    .student_max = memory.student_max.view,
                    .student_sum = memory.student_sum.view,
                    .teacher_max = memory.teacher_max.view,
                    .teacher_sum = memory.teacher_sum.view};
  memory.backward = {
      .inputs = memory.forward.inputs,
      .kl = memory.kl.view,
      .student_max = memory.student_max.view,
      .student_sum = memory.student_sum.view,
      .teacher_max = memory.teacher_max.view,
      .teacher_sum = memory.teacher_sum.view,
      .upstream = memory.upstream.view,
      .student_gradient = {.tensor = memory.student_gradient.view},
      .teacher_gradient = {.tensor = memory.teacher_gradient.view}};
  return memory;
}

RankResult read(runtime::Device& device, const KlMemory& memory) {
  device.synchronize();
  RankResult result;
  result.kl = tuning::download_floats(device, memory.kl);
  result.student_max = tuning::download_floats(device, memory.student_max);
  result.student_sum = tuning::download_floats(device, memory.student_sum);
  result.teacher_max = tuning::download_floats(device, memory.teacher_max);
  result.teacher_sum = tuning::download_floats(device, memory.teacher_sum);
  result.student_gradient = fetch(device, memory.student_gradient);
  result.teacher_gradient = fetch(device, memory.teacher_gradient);
  return result;
}

RowMemory memory_of(runtime::Device& device, const VocabShards& shards,
                    int rank, const ShardProblem& problem) {
  return make_memory(device, problem, columns_of(problem.logits, shards, rank));
}
KlMemory memory_of(runtime::Device& device, const VocabShards& shards, int rank,
                   const KlProblem& problem) {
  return make_memory(device, problem, columns_of(problem.student, shards, rank),
                     columns_of(problem.teacher, shards, rank));
}

std::byte* at(const DeviceTensor& tensor, std::size_t offset) {
  return static_cast<std::byte*>(tensor.view.data) + offset;
}

DeviceTensor bytes(runtime::Device& device, std::size_t count) {
  return tuning::poisoned_tensor(
      device, DType::kFp32, std::vector{static_cast<std::int64_t>(count / 4)});
}

/// Adds up words on the host, as a collective would.
void sum_words(runtime::Device& device, std::vector<DeviceTensor>& words,
               std::size_t count) {
  std::vector<std::uint32_t> sums(count, 0);
  std::vector<std::uint32_t> one(count);
  for (const DeviceTensor& rank : words) {
    device.copy_out(one.data(), rank.view.data, count * 4);
    for (std::size_t i = 0; i < count; ++i) sums[i] += one[i];
  }
  for (const DeviceTensor& rank : words) {
    device.copy_in(rank.view.data, sums.data(), count * 4);
  }
}

template <typename Problem>
std::vector<RankResult> by_hand(Runtime& runtime, const VocabShards& shards,
                                const Problem& problem, MergeOrder order) {
  runtime::Device& device = runtime.engine().device();
  const auto ranks = static_cast<std::size_t>(shards.ranks());
  const auto place = [&](std::size_t rank) {
    return ShardPlace{&shards, static_cast<int>(rank), order};
  };
  std::vector<decltype(memory_of(device, shards, 0, problem))> memory;
  std::vector<DeviceTensor> words;
  DeviceTensor partials;
  ShardSizes sizes;
  const DeviceTensor disagreement = bytes(device, 16);
  device.fill(disagreement.view.data, 0, 16);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    memory.push_back(
        memory_of(device, shards, static_cast<int>(rank), problem));
    sizes = shard_sizes(runtime, memory[rank].forward, place(rank));
    if (rank == 0) partials = bytes(device, sizes.partials * ranks);
    words.push_back(bytes(device, sizes.words));
    shard_statistics(runtime, memory[rank].forward, place(rank),
                     {.partials = at(partials, rank * sizes.partials),
                      .words = words[rank].view.data});
  }
  device.synchronize();
  sum_words(device, words, sizes.words / 4);
  std::vector<RankResult> results;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    shard_merge(runtime, memory[rank].forward, place(rank),
                {.partials = partials.view.data,
                 .words = words[rank].view.data,
                 .disagreement = disagreement.view.data});
    shard_gradient(runtime, memory[rank].backward, place(rank));
    results.push_back(read(device, memory[rank]));
  }
  return results;
}

}  // namespace

ShardProblem random_problem(Terms terms, DType dtype, std::int64_t rows,
                            std::int64_t vocab, std::int64_t ids_per_row,
                            float temperature) {
  return {.terms = terms,
          .logits = random_matrix(dtype, rows, vocab, 2, 1),
          .ids = random_ids(rows * ids_per_row, vocab, 2),
          .ids_per_row = ids_per_row,
          .temperature = temperature,
          .up_logp = random_floats(rows * ids_per_row, 3),
          .up_entropy = random_floats(rows, 4),
          .up_lse = random_floats(rows, 5),
          .up_squares = random_floats(rows, 6)};
}

KlProblem random_kl_problem(KlDirection direction, DType dtype,
                            std::int64_t rows, std::int64_t vocab) {
  return {.direction = direction,
          .student = random_matrix(dtype, rows, vocab, 2, 1),
          .teacher = random_matrix(dtype, rows, vocab, 2, 2),
          .upstream = random_floats(rows, 3)};
}

HostMatrix columns_of(const HostMatrix& whole, const VocabShards& shards,
                      int rank) {
  const VocabRange range = shards.range(rank);
  HostMatrix part{whole.dtype, whole.rows, range.width(), {}};
  for (std::int64_t row = 0; row < whole.rows; ++row) {
    for (std::int64_t j = range.begin; j < range.end; ++j) {
      part.values.push_back(
          j < shards.vocab()
              ? whole.values[static_cast<std::size_t>(row * whole.columns + j)]
              : std::numeric_limits<double>::quiet_NaN());
    }
  }
  return part;
}

RankResult run_rank(Runtime& runtime, VocabParallel& group,
                    const ShardProblem& problem, CUstream_st* stream) {
  runtime::Device& device = runtime.engine().device();
  const RowMemory memory =
      memory_of(device, group.shards(), group.place().rank, problem);
  const auto scratch = device.allocate(group.workspace_bytes(memory.forward));
  device.synchronize();
  group.forward(memory.forward, {scratch->data(), scratch->size()}, stream);
  group.check(stream);
  group.backward(memory.backward, stream);
  return read(device, memory);
}

RankResult run_rank(Runtime& runtime, VocabParallel& group,
                    const KlProblem& problem, CUstream_st* stream) {
  runtime::Device& device = runtime.engine().device();
  const KlMemory memory =
      memory_of(device, group.shards(), group.place().rank, problem);
  const auto scratch = device.allocate(group.workspace_bytes(memory.forward));
  device.synchronize();
  group.kl_forward(memory.forward, {scratch->data(), scratch->size()}, stream);
  group.check(stream);
  group.kl_backward(memory.backward, stream);
  return read(device, memory);
}

std::vector<RankResult> run_by_hand(Runtime& runtime, const VocabShards& shards,
                                    const ShardProblem& problem,
                                    MergeOrder order) {
  return by_hand(runtime, shards, problem, order);
}
std::vector<RankResult> run_by_hand(Runtime& runtime, const VocabShards& shards,
                                    const KlProblem& problem,
                                    MergeOrder order) {
  return by_hand(runtime, shards, problem, order);
}

RankResult run_whole(Runtime& runtime, const ShardProblem& problem) {
  runtime::Device& device = runtime.engine().device();
  const RowMemory memory = make_memory(device, problem, problem.logits);
  forward(runtime, memory.forward);
  backward(runtime, memory.backward);
  return read(device, memory);
}

RankResult run_whole(Runtime& runtime, const KlProblem& problem) {
  runtime::Device& device = runtime.engine().device();
  const KlMemory memory =
      make_memory(device, problem, problem.student, problem.teacher);
  kl_forward(runtime, memory.forward);
  kl_backward(runtime, memory.backward);
  return read(device, memory);
}

}  // namespace logpjit::tests
