// Ranks one after the other, on views of the whole tensors.
#include "tuning/case_shards.hpp"

#include "logpjit/error.hpp"
#include "logpjit/shard_operations.hpp"
#include "runtime/engine.hpp"

namespace logpjit::tuning {
namespace {

VocabShards shards_of(const std::vector<Range>& ranges) {
  std::vector<VocabRange> made;
  made.reserve(ranges.size());
  for (const Range& range : ranges) made.push_back({range.low, range.high});
  return VocabShards(std::move(made));
}

TensorView columns(TensorView tensor, VocabRange range) {
  const auto last = static_cast<std::size_t>(tensor.rank - 1);
  tensor.data = static_cast<std::byte*>(tensor.data) +
                static_cast<std::size_t>(range.begin * tensor.strides[last]) *
                    size_of(tensor.dtype);
  tensor.shape[last] = range.width();
  return tensor;
}

RowForward local(const RowForward& call, VocabRange range) {
  RowForward made = call;
  made.logits = columns(call.logits, range);
  return made;
}
KlForward local(const KlForward& call, VocabRange range) {
  KlForward made = call;
  made.inputs.student = columns(call.inputs.student, range);
  made.inputs.teacher = columns(call.inputs.teacher, range);
  return made;
}

/// Statistics of all ranks, then each rank's merge.
template <typename Call>
void run_ranks(Runtime& runtime, const Call& call,
               const std::vector<Range>& ranges) {
  runtime::Device& device = runtime.engine().device();
  const VocabShards shards = shards_of(ranges);
  const auto ranks = static_cast<std::size_t>(shards.ranks());
  const auto call_of = [&](std::size_t rank) {
    return local(call, shards.range(static_cast<int>(rank)));
  };
  const auto place_of = [&](std::size_t rank) {
    return ShardPlace{.shards = &shards, .rank = static_cast<int>(rank)};
  };
  const ShardSizes sizes = shard_sizes(runtime, call_of(0), place_of(0));
  if (sizes.words > 0) {
    throw Error(ErrorCode::kUnsupported,
                "shard cases have at most 16 ids a row");
  }
  const auto partials = device.allocate(sizes.partials * ranks);
  const auto disagreement = device.allocate(16);
  device.fill(disagreement->data(), 0, 16);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::byte* own =
        static_cast<std::byte*>(partials->data()) + rank * sizes.partials;
    shard_statistics(runtime, call_of(rank), place_of(rank), {.partials = own});
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    shard_merge(
        runtime, call_of(rank), place_of(rank),
        {.partials = partials->data(), .disagreement = disagreement->data()});
  }
  device.synchronize();
}

}  // namespace

void forward_cut(Runtime& runtime, const RowForward& call,
                 const std::vector<Range>& ranges) {
  if (ranges.empty()) return forward(runtime, call);
  run_ranks(runtime, call, ranges);
}

void kl_forward_cut(Runtime& runtime, const KlForward& call,
                    const std::vector<Range>& ranges) {
  if (ranges.empty()) return kl_forward(runtime, call);
  run_ranks(runtime, call, ranges);
}

void backward_cut(Runtime& runtime, const RowBackward& call,
                  const std::vector<Range>& ranges) {
  if (ranges.empty()) return backward(runtime, call);
  const VocabShards shards = shards_of(ranges);
  for (int rank = 0; rank < shards.ranks(); ++rank) {
    RowBackward part = call;
    part.logits = columns(call.logits, shards.range(rank));
    part.gradient.tensor = columns(call.gradient.tensor, shards.range(rank));
    shard_gradient(runtime, part, {.shards = &shards, .rank = rank});
  }
}

void kl_backward_cut(Runtime& runtime, const KlBackward& call,
                     const std::vector<Range>& ranges) {
  if (ranges.empty()) return kl_backward(runtime, call);
  const VocabShards shards = shards_of(ranges);
  for (int rank = 0; rank < shards.ranks(); ++rank) {
    const VocabRange range = shards.range(rank);
    KlBackward part = call;
    part.inputs.student = columns(call.inputs.student, range);
    part.inputs.teacher = columns(call.inputs.teacher, range);
    for (Gradient* gradient :
         {&part.student_gradient, &part.teacher_gradient}) {
      if (!gradient->tensor.given()) continue;
      gradient->tensor = columns(gradient->tensor, range);
    }
    shard_gradient(runtime, part, {.shards = &shards, .rank = rank});
  }
}

}  // namespace logpjit::tuning
