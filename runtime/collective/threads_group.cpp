// Threads of one process as ranks: pointers are exchanged, memory is copied.
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "logpjit/collective.hpp"
#include "logpjit/error.hpp"

namespace logpjit {
namespace {

/// What a rank brought to a meeting.
struct Contribution {
  const void* data = nullptr;
  std::size_t bytes = 0;
  bool sum = false;
};

/// Where the ranks meet. Every collective is two meetings: all have brought
/// their data; all have taken what they need.
class MeetingPlace {
 public:
  MeetingPlace(int ranks, double timeout_s)
      : timeout_s_(timeout_s),
        contributions_(static_cast<std::size_t>(ranks)) {}

  void bring(int rank, const Contribution& contribution) {
    {
      const std::lock_guard lock(mutex_);
      contributions_[static_cast<std::size_t>(rank)] = contribution;
    }
    meet(rank);
  }
  const std::vector<Contribution>& contributions() const {
    return contributions_;
  }

  /// Returns when all ranks have called it.
  void meet(int rank) {
    std::unique_lock lock(mutex_);
    throw_failure();
    const std::uint64_t meeting = meeting_;
    if (++arrived_ == contributions_.size()) {
      arrived_ = 0;
      ++meeting_;
      all_.notify_all();
      return;
    }
    const auto over = [&] { return meeting_ != meeting || !failure_.empty(); };
    if (!all_.wait_for(lock, std::chrono::duration<double>(timeout_s_), over)) {
      fail(ErrorCode::kTimeout,
           fmt::format("rank {} waited {} s for the other ranks", rank,
                       timeout_s_));
    }
    if (meeting_ == meeting) throw_failure();
  }

  void abort(ErrorCode code, const std::string& why) {
    const std::lock_guard lock(mutex_);
    fail(code, why);
  }
  void throw_if_failed() {
    const std::lock_guard lock(mutex_);
    throw_failure();
  }

 private:
  void fail(ErrorCode code, const std::string& why) {
    if (!failure_.empty()) return;
    code_ = code;
    failure_ = why;
    all_.notify_all();
  }
  void throw_failure() const {
    if (!failure_.empty()) throw Error(code_, "threads group: " + failure_);
  }

  const double timeout_s_;
  std::mutex mutex_;
  std::condition_variable all_;
  std::vector<Contribution> contributions_;
  std::size_t arrived_ = 0;
  std::uint64_t meeting_ = 0;
  ErrorCode code_ = ErrorCode::kInternal;
  std::string failure_;
};

class ThreadsCollective final : public Collective {
 public:
  ThreadsCollective(std::shared_ptr<MeetingPlace> place, int rank, int ranks)
      : place_(std::move(place)), rank_(rank), ranks_(ranks) {}
  ~ThreadsCollective() override {
    place_->abort(ErrorCode::kDriver,
                  fmt::format("rank {} has left the group", rank_));
  }
  ThreadsCollective(const ThreadsCollective&) = delete;
  ThreadsCollective& operator=(const ThreadsCollective&) = delete;

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  void all_gather(const void* send, void* receive, std::size_t bytes,
                  CUstream_st* /*stream*/) override {
    place_->bring(rank_, {send, bytes, false});
    check_alike();
    for (int rank = 0; rank < ranks_; ++rank) {
      void* to = static_cast<std::byte*>(receive) +
                 static_cast<std::size_t>(rank) * bytes;
      const void* from = of(rank).data;
      if (to != from) std::memcpy(to, from, bytes);
    }
    place_->meet(rank_);
  }

  void sum_words(void* words, std::size_t count,
                 CUstream_st* /*stream*/) override {
    place_->bring(rank_, {words, count * sizeof(std::uint32_t), true});
    check_alike();
    std::vector<std::uint32_t> sums(count, 0);
    for (int rank = 0; rank < ranks_; ++rank) {
      const auto* theirs = static_cast<const std::uint32_t*>(of(rank).data);
      for (std::size_t i = 0; i < count; ++i) sums[i] += theirs[i];
    }
    place_->meet(rank_);
    std::memcpy(words, sums.data(), count * sizeof(std::uint32_t));
    place_->meet(rank_);
  }

  void poll() override { place_->throw_if_failed(); }
  void abort(const std::string& why) override {
    place_->abort(ErrorCode::kDriver, fmt::format("rank {}: {}", rank_, why));
  }

 private:
  const Contribution& of(int rank) const {
    return place_->contributions()[static_cast<std::size_t>(rank)];
  }
  /// Every rank sees the same and throws the same.
  void check_alike() const {
    for (int rank = 1; rank < ranks_; ++rank) {
      if (of(rank).bytes == of(0).bytes && of(rank).sum == of(0).sum) continue;
      const std::size_t bytes = of(0).bytes;
      const std::size_t other = of(rank).bytes;
      place_->meet(rank_);
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("threads group: rank 0 brought {} bytes, rank {} "
                              "{}: the ranks are not in the same call",
                              bytes, rank, other));
    }
  }

  std::shared_ptr<MeetingPlace> place_;
  int rank_;
  int ranks_;
};

}  // namespace

std::vector<std::unique_ptr<Collective>> make_threads_group(int ranks,
                                                            double timeout_s) {
  if (ranks < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("make_threads_group: ranks: {} is below 1", ranks));
  }
  const auto place = std::make_shared<MeetingPlace>(ranks, timeout_s);
  std::vector<std::unique_ptr<Collective>> ends;
  ends.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    ends.push_back(std::make_unique<ThreadsCollective>(place, rank, ranks));
  }
  return ends;
}

}  // namespace logpjit
