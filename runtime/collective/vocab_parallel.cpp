// The public face of ShardGroup.
#include "logpjit/vocab_parallel.hpp"

#include <utility>

#include "runtime/collective/shard_group.hpp"

namespace logpjit {

VocabParallel::VocabParallel(Runtime& runtime, Collective& collective,
                             VocabShards shards,
                             const VocabParallelOptions& options)
    : group_(std::make_unique<runtime::ShardGroup>(
          runtime, collective, std::move(shards), options)) {}
VocabParallel::~VocabParallel() = default;

const VocabShards& VocabParallel::shards() const { return group_->shards(); }
ShardPlace VocabParallel::place() const { return group_->place(); }

std::size_t VocabParallel::workspace_bytes(const RowForward& call) const {
  return group_->workspace_bytes<runtime::RowShard>(call);
}
std::size_t VocabParallel::workspace_bytes(const KlForward& call) const {
  return group_->workspace_bytes<runtime::KlShard>(call);
}

void VocabParallel::forward(const RowForward& call, Workspace workspace,
                            CUstream_st* stream) {
  group_->forward<runtime::RowShard>(call, workspace, stream);
}
void VocabParallel::kl_forward(const KlForward& call, Workspace workspace,
                               CUstream_st* stream) {
  group_->forward<runtime::KlShard>(call, workspace, stream);
}
void VocabParallel::backward(const RowBackward& call, CUstream_st* stream) {
  shard_gradient(group_->runtime(), call, place(), stream);
}
void VocabParallel::kl_backward(const KlBackward& call, CUstream_st* stream) {
  shard_gradient(group_->runtime(), call, place(), stream);
}

void VocabParallel::check(CUstream_st* stream) { group_->check(stream); }

}  // namespace logpjit
