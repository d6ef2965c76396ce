// NCCL groups: joined, borrowed, given up.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <thread>
#include <utility>

#include "logpjit/collective.hpp"
#include "logpjit/error.hpp"
#include "runtime/collective/call_watch.hpp"
#include "runtime/collective/nccl.hpp"
#include "runtime/engine.hpp"

namespace logpjit {
namespace {

using runtime::Nccl;
using runtime::NcclComm;
using runtime::NcclUniqueId;

class NcclCollective final : public Collective {
 public:
  NcclCollective(std::shared_ptr<const Nccl> nccl, NcclComm* comm, bool owned,
                 double timeout_s)
      : nccl_(std::move(nccl)),
        comm_(comm),
        owned_(owned),
        watch_(timeout_s, [this] { stop(); }) {
    nccl_->check(nccl_->comm_user_rank(comm_, &rank_), "ncclCommUserRank");
    nccl_->check(nccl_->comm_count(comm_, &ranks_), "ncclCommCount");
  }
  ~NcclCollective() override {
    if (NcclComm* comm = comm_; owned_ && comm != nullptr) {
      nccl_->comm_destroy(comm);
    }
  }
  NcclCollective(const NcclCollective&) = delete;
  NcclCollective& operator=(const NcclCollective&) = delete;

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  void all_gather(const void* send, void* receive, std::size_t bytes,
                  CUstream_st* stream) override {
    watched("ncclAllGather", [&](NcclComm* comm) {
      return nccl_->all_gather(send, receive, bytes, runtime::kNcclUint8, comm,
                               stream);
    });
  }
  void sum_words(void* words, std::size_t count, CUstream_st* stream) override {
    watched("ncclAllReduce", [&](NcclComm* comm) {
      return nccl_->all_reduce(words, words, count, runtime::kNcclUint32,
                               runtime::kNcclSum, comm, stream);
    });
  }

  void poll() override {
    int state = runtime::kNcclSuccess;
    nccl_->check(nccl_->comm_async_error(comm(), &state),
                 "ncclCommGetAsyncError");
    nccl_->check(state, "an NCCL collective");
  }

  void abort(const std::string& why) override {
    if (comm_ == nullptr) return;
    why_ = why;
    stop();
  }

 private:
  /// A borrowed communicator is stopped too: its kernels would wait for ever.
  void stop() {
    NcclComm* comm = comm_.exchange(nullptr);
    if (comm != nullptr) nccl_->comm_abort(comm);
  }

  template <typename Call>
  void watched(const char* name, const Call& call) {
    NcclComm* comm = this->comm();
    int result = 0;
    {
      const runtime::CallWatch::Scope scope(watch_);
      result = call(comm);
    }
    if (watch_.gave_up()) {
      why_ = fmt::format("rank {} of {} waited {} s inside {} for the others",
                         rank_, ranks_, watch_.timeout_s(), name);
      throw Error(ErrorCode::kTimeout, fmt::format("NCCL group: {}", why_));
    }
    nccl_->check(result, name);
  }

  NcclComm* comm() const {
    if (NcclComm* comm = comm_) return comm;
    throw Error(ErrorCode::kDriver,
                fmt::format("the NCCL group was given up: {}", why_));
  }

  std::shared_ptr<const Nccl> nccl_;
  std::atomic<NcclComm*> comm_;
  bool owned_;
  int rank_ = 0;
  int ranks_ = 1;
  std::string why_;
  runtime::CallWatch watch_;  // last: its thread uses the others
};

/// Joining waits for all ranks; a thread of its own does, since NCCL cannot be
/// told to stop. After a time-out it stays behind.
NcclComm* join(const std::shared_ptr<const Nccl>& nccl, runtime::Device& device,
               const NcclUniqueId& id, int rank, int ranks, double timeout_s) {
  struct Joined {
    int result = 0;
    NcclComm* comm = nullptr;
  };
  std::promise<Joined> promise;
  std::future<Joined> future = promise.get_future();
  std::thread([nccl, &device, id, rank, ranks,
               promise = std::move(promise)]() mutable {
    Joined joined;
    try {
      device.bind_thread();
      joined.result = nccl->comm_init_rank(&joined.comm, ranks, id, rank);
      promise.set_value(joined);
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
  }).detach();
  if (future.wait_for(std::chrono::duration<double>(timeout_s)) !=
      std::future_status::ready) {
    throw Error(ErrorCode::kTimeout,
                fmt::format("join_nccl: rank {} of {} waited {} s for the "
                            "others; do all ranks have the same id and can "
                            "they reach its maker?",
                            rank, ranks, timeout_s));
  }
  const Joined joined = future.get();
  nccl->check(joined.result, "ncclCommInitRank");
  return joined.comm;
}

[[noreturn]] void refuse(const char* call, const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", call, what));
}

}  // namespace

NcclId make_nccl_id(const Options& options) {
  const Nccl nccl(options);
  NcclUniqueId id{};
  nccl.check(nccl.get_unique_id(&id), "ncclGetUniqueId");
  NcclId made;
  static_assert(sizeof made == sizeof id);
  std::memcpy(made.data(), &id, sizeof id);
  return made;
}

std::string nccl_version(const Options& options) {
  return Nccl(options).version();
}

std::unique_ptr<Collective> join_nccl(Runtime& runtime, const NcclId& id,
                                      int rank, int ranks, double timeout_s) {
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    refuse("join_nccl",
           fmt::format("rank: {} is not one of {} ranks", rank, ranks));
  }
  auto nccl = std::make_shared<const Nccl>(runtime.engine().options());
  NcclUniqueId unique{};
  std::memcpy(&unique, id.data(), sizeof unique);
  NcclComm* comm =
      join(nccl, runtime.engine().device(), unique, rank, ranks, timeout_s);
  return std::make_unique<NcclCollective>(std::move(nccl), comm, true,
                                          timeout_s);
}

std::unique_ptr<Collective> use_nccl(Runtime& runtime, void* communicator,
                                     double timeout_s) {
  if (communicator == nullptr) refuse("use_nccl", "communicator: null pointer");
  auto nccl = std::make_shared<const Nccl>(runtime.engine().options());
  auto* comm = static_cast<NcclComm*>(communicator);
  int device = 0;
  nccl->check(nccl->comm_device(comm, &device), "ncclCommCuDevice");
  if (device != runtime.device().id.index) {
    refuse("use_nccl", fmt::format("communicator: is of device {}, the runtime "
                                   "works on {}",
                                   device, runtime.device().id.index));
  }
  return std::make_unique<NcclCollective>(std::move(nccl), comm, false,
                                          timeout_s);
}

}  // namespace logpjit
