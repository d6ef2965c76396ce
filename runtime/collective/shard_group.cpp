// A forward over ranks: cards, statistics, one all-gather a block, merge.
#include "runtime/collective/shard_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <thread>

#include "logpjit/error.hpp"
#include "runtime/operations/check.hpp"

namespace logpjit::runtime {
namespace {

constexpr std::string_view kOp = "vocab-parallel";

/// Up to twice this many rows are one block. Each further block costs about
/// 20 us (the end of one more launch); gathering 32768 rows on two H200s takes
/// 10.
constexpr std::int64_t kBlockRows = 65536;
/// Most bytes of all ranks' partials in a block of segment mode.
constexpr std::size_t kSegmentBytes = std::size_t{64} << 20;

std::int64_t scheduled_rows(const ShardForward& shard) {
  if (shard.shard.slots == 0) {
    return shard.rows <= 2 * kBlockRows ? shard.rows : kBlockRows;
  }
  const std::size_t row =
      shard.partial_bytes(1) * static_cast<std::size_t>(shard.ranks);
  return std::max<std::int64_t>(1,
                                static_cast<std::int64_t>(kSegmentBytes / row));
}

std::size_t rounded(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

std::byte* at(void* base, std::size_t offset) {
  return static_cast<std::byte*>(base) + offset;
}

/// The memory itself: given, or allocated by the caller's function.
Workspace obtain(const BlockPlan& plan, Workspace workspace,
                 CUstream_st* stream) {
  if (plan.bytes() == 0) return workspace;
  if (workspace.data == nullptr && workspace.allocate != nullptr) {
    workspace.data =
        workspace.allocate(workspace.context, plan.bytes(), stream);
    workspace.bytes = workspace.data != nullptr ? plan.bytes() : 0;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(workspace.data);
  if (workspace.bytes < plan.bytes() || address == 0 || address % 16 != 0) {
    refuse(
        kOp, "workspace",
        fmt::format("{} bytes at {} are not the {} at a multiple of 16 that "
                    "workspace_bytes asks for",
                    workspace.bytes, fmt::ptr(workspace.data), plan.bytes()));
  }
  return workspace;
}

}  // namespace

RowBlock BlockPlan::block(std::int64_t number) const {
  const std::int64_t first = number * block_rows;
  return {first, std::min(block_rows, rows - first)};
}

BlockPlan plan_blocks(const ShardForward& shard, std::int64_t block_rows) {
  BlockPlan plan;
  plan.rows = shard.rows;
  plan.block_rows = block_rows > 0 ? block_rows : scheduled_rows(shard);
  plan.block_rows = std::max<std::int64_t>(
      1, std::min(plan.block_rows, std::max<std::int64_t>(shard.rows, 1)));
  plan.blocks = (shard.rows + plan.block_rows - 1) / plan.block_rows;
  plan.places = shard.shard.slots == 0 ? plan.blocks
                                       : std::min<std::int64_t>(plan.blocks, 2);
  const ShardSizes sizes = shard.sizes(plan.block_rows);
  plan.place_bytes = sizes.partials * static_cast<std::size_t>(shard.ranks) +
                     rounded(sizes.words);
  return plan;
}

ShardGroup::ShardGroup(Runtime& runtime, Collective& collective,
                       VocabShards shards, const VocabParallelOptions& options)
    : runtime_(runtime),
      device_(runtime.engine().device()),
      collective_(collective),
      shards_(std::move(shards)),
      options_(options) {
  if (collective.ranks() != shards_.ranks()) {
    refuse(kOp, "collective",
           fmt::format("has {} ranks, the shards are for {}",
                       collective.ranks(), shards_.ranks()));
  }
  check_finite_positive(kOp, "timeout_s", options.timeout_s);
  if (options.block_rows < 0) refuse(kOp, "block_rows", "is below 0");
  const std::size_t cards =
      sizeof(CallCard) * (static_cast<std::size_t>(shards_.ranks()) + 1);
  cards_ = device_.allocate(cards);
  host_cards_ = device_.allocate_host(cards);
  disagreement_ = device_.allocate(16);
  device_.fill(disagreement_->data(), 0, 16);
  settled_ = device_.make_event();
  for (auto* events : {&swept_, &merged_}) {
    for (auto& event : *events) event = device_.make_event();
  }
  side_ = device_.make_stream();
}

ShardGroup::~ShardGroup() { device_.free_stream(side_); }

ShardPlace ShardGroup::place() const {
  return {&shards_, collective_.rank(), options_.order};
}

ShardBuffers ShardGroup::buffers(const ShardForward& shard,
                                 const BlockPlan& plan,
                                 const Workspace& workspace,
                                 std::int64_t number) const {
  void* base =
      at(workspace.data,
         static_cast<std::size_t>(number % plan.places) * plan.place_bytes);
  const std::size_t partials = shard.partial_bytes(plan.block_rows) *
                               static_cast<std::size_t>(shard.ranks);
  return {.partials = base,
          .words = at(base, partials),
          .disagreement = disagreement_->data()};
}

ShardBuffers ShardGroup::own(const ShardForward& shard, const ShardBuffers& all,
                             std::int64_t rows) const {
  ShardBuffers own = all;
  own.partials =
      at(all.partials, shard.partial_bytes(rows) *
                           static_cast<std::size_t>(collective_.rank()));
  return own;
}

template <typename Shard, typename Call>
void ShardGroup::forward(const Call& call, const Workspace& given,
                         CUstream_st* stream) {
  Workspace workspace = given;
  std::optional<Shard> shard;
  BlockPlan plan;
  std::exception_ptr refusal;
  try {
    shard.emplace(runtime_, call, place());
    plan = plan_blocks(*shard, options_.block_rows);
    shard->set_block_rows(plan.block_rows);
    workspace = obtain(plan, given, stream);
  } catch (...) {
    refusal = std::current_exception();
  }
  collective_.poll();
  const bool compare = options_.compare_calls && !device_.is_capturing(stream);
  if (!compare && refusal) std::rethrow_exception(refusal);
  if (compare)
    send_card(refusal ? card_of(refusal) : card_of(shard->signature));
  const bool ready = !refusal && plan.blocks > 0;
  if (ready) {
    const RowBlock first = plan.block(0);
    const ShardBuffers all = buffers(*shard, plan, workspace, 0);
    shard->launch_statistics(first, own(*shard, all, first.count), stream);
  }
  if (compare) settle(refusal);
  if (ready) run(*shard, plan, workspace, stream);
}

template <typename Shard>
void ShardGroup::run(const Shard& shard, const BlockPlan& plan,
                     const Workspace& workspace, CUstream_st* stream) {
  for (std::int64_t number = 0; number < plan.blocks; ++number) {
    const auto turn = static_cast<std::size_t>(number % 2);
    const RowBlock block = plan.block(number);
    const ShardBuffers all = buffers(shard, plan, workspace, number);
    if (number > 0) {
      if (number >= plan.places) device_.wait_for(stream, *merged_[turn]);
      shard.launch_statistics(block, own(shard, all, block.count), stream);
    }
    if (plan.blocks == 1) return gather_and_merge(shard, block, all, stream);
    device_.mark(*swept_[turn], stream);
    device_.wait_for(side_, *swept_[turn]);
    gather_and_merge(shard, block, all, side_);
    device_.mark(*merged_[turn], side_);
  }
  device_.wait_for(stream,
                   *merged_[static_cast<std::size_t>((plan.blocks - 1) % 2)]);
}

template <typename Shard>
void ShardGroup::gather_and_merge(const Shard& shard, RowBlock block,
                                  const ShardBuffers& all,
                                  CUstream_st* stream) {
  const ShardSizes sizes = shard.sizes(block.count);
  try {
    collective_.all_gather(own(shard, all, block.count).partials, all.partials,
                           sizes.partials, stream);
    if (sizes.words > 0) {
      collective_.sum_words(all.words, sizes.words / 4, stream);
    }
    shard.launch_merge(block, all, stream);
  } catch (const Error& error) {
    // The other ranks must not wait for what will not come.
    collective_.abort(error.message());
    throw;
  }
}

void ShardGroup::send_card(const CallCard& card) {
  const auto ranks = static_cast<std::size_t>(shards_.ranks());
  std::byte* host = at(host_cards_->data(), sizeof card * ranks);
  std::byte* mine = at(cards_->data(), sizeof card * ranks);
  std::memcpy(host, &card, sizeof card);
  device_.copy(mine, host, sizeof card, side_);
  collective_.all_gather(mine, cards_->data(), sizeof card, side_);
  device_.copy(host_cards_->data(), cards_->data(), sizeof card * ranks, side_);
  device_.mark(*settled_, side_);
}

void ShardGroup::settle(const std::exception_ptr& own_refusal) {
  await(*settled_, "the other ranks' call");
  check_cards(std::span(static_cast<const CallCard*>(host_cards_->data()),
                        static_cast<std::size_t>(shards_.ranks())),
              own_refusal);
}

void ShardGroup::await(const Event& event, const std::string& what) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto limit = std::chrono::duration<double>(options_.timeout_s);
  while (!device_.reached(event)) {
    collective_.poll();
    const auto waited = Clock::now() - start;
    if (waited > limit) {
      const std::string why =
          fmt::format("rank {} of {} waited {} s for {}", collective_.rank(),
                      collective_.ranks(), options_.timeout_s, what);
      collective_.abort(why);
      throw Error(ErrorCode::kTimeout, fmt::format("{}: {}", kOp, why));
    }
    // A round trip takes tens of microseconds; then be polite.
    if (waited > std::chrono::milliseconds(1)) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

void ShardGroup::check(CUstream_st* stream) {
  device_.mark(*settled_, stream);
  await(*settled_, "the work on its stream");
  std::uint32_t other = 0;
  device_.copy_out(&other, disagreement_->data(), sizeof other);
  if (other == 0) return;
  device_.fill(disagreement_->data(), 0, sizeof other);
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: rank {} made another call than rank {} (rows, "
                          "ids, dtype, operation, shards or transform differ); "
                          "the outputs are NaN",
                          kOp, other - 1, collective_.rank()));
}

template void ShardGroup::forward<RowShard, RowForward>(const RowForward&,
                                                        const Workspace&,
                                                        CUstream_st*);
template void ShardGroup::forward<KlShard, KlForward>(const KlForward&,
                                                      const Workspace&,
                                                      CUstream_st*);

}  // namespace logpjit::runtime
