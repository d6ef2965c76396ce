// Joining NCCL, and the little that ranks say to each other outside of tests.
#include "runtime/engine.hpp"
#include "tests/conformance/ranks/ranks.hpp"

namespace logpjit::tests {

Rank::Rank(const RankFlags& flags, const NcclId& id) : flags_(flags) {
  Options options = Options::from_environment();
  options.device = "cuda:" + std::to_string(flags.device);
  runtime_ = std::make_unique<Runtime>(options);
  nccl_ = std::make_unique<runtime::Nccl>(options);
  device().bind_thread();
  runtime::NcclUniqueId unique{};
  static_assert(sizeof unique == sizeof id);
  std::copy(id.begin(), id.end(), unique.internal);
  nccl_->check(nccl_->comm_init_rank(&comm_, flags.ranks, unique, flags.rank),
               "ncclCommInitRank");
  collective_ = use_nccl(*runtime_, comm_);
}

Rank::Rank(const RankFlags& flags, std::unique_ptr<Collective> collective)
    : flags_(flags), collective_(std::move(collective)) {
  Options options = Options::from_environment();
  options.device = "cpu";
  runtime_ = std::make_unique<Runtime>(options);
}

void Rank::give_up(bool aborted) {
  collective_.reset();
  if (comm_ != nullptr && !aborted) nccl_->comm_abort(comm_);
  comm_ = nullptr;
}

Rank::~Rank() {
  collective_.reset();
  if (comm_ != nullptr) nccl_->comm_destroy(comm_);
}

runtime::Device& Rank::device() const { return runtime_->engine().device(); }

std::vector<std::uint64_t> Rank::exchange(std::uint64_t mine) {
  const auto ranks = static_cast<std::size_t>(flags_.ranks);
  const auto memory = device().allocate((ranks + 1) * sizeof mine);
  auto* words = static_cast<std::uint64_t*>(memory->data());
  device().copy_in(words + ranks, &mine, sizeof mine);
  CUstream_st* stream = device().make_stream();
  collective_->all_gather(words + ranks, words, sizeof mine, stream);
  device().synchronize();
  device().free_stream(stream);
  std::vector<std::uint64_t> all(ranks);
  device().copy_out(all.data(), words, ranks * sizeof mine);
  return all;
}

void Rank::meet() { exchange(0); }

}  // namespace logpjit::tests
