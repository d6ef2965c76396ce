// The vocab-parallel program: one rank's surroundings, what it checks and
// times.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "logpjit/vocab_parallel.hpp"
#include "runtime/collective/nccl.hpp"
#include "runtime/device.hpp"

namespace logpjit::tests {

struct RankFlags {
  int rank = 0;
  int ranks = 1;
  int device = 0;
  std::int64_t vocab = 151936;
  std::vector<std::int64_t> rows;
  bool checks = true;
  bool speed = true;
  bool quick = false;   ///< a few of the checks
  bool late = false;    ///< the last rank never comes: see run_late
  bool on_cpu = false;  ///< sockets instead of NCCL
};

/// Rank 0's end of a group over sockets, before the others have come.
class SocketGroup {
 public:
  /// Listens at this address of the host, on a port of its own.
  explicit SocketGroup(const std::string& address);
  ~SocketGroup();
  SocketGroup(const SocketGroup&) = delete;
  SocketGroup& operator=(const SocketGroup&) = delete;

  /// For the other ranks: where to come.
  const NcclId& id() const { return id_; }
  /// Waits for them.
  std::unique_ptr<Collective> meet(int ranks) const;

 private:
  int listener_;
  NcclId id_{};
};
std::unique_ptr<Collective> join_sockets(const NcclId& id, int rank, int ranks);

/// One rank, joined to the others: a thread or a process.
class Rank {
 public:
  /// Over NCCL.
  Rank(const RankFlags& flags, const NcclId& id);
  /// On the CPU device, over a collective of the caller's.
  Rank(const RankFlags& flags, std::unique_ptr<Collective> collective);
  ~Rank();

  const RankFlags& flags() const { return flags_; }
  Runtime& runtime() { return *runtime_; }
  runtime::Device& device() const;
  Collective& collective() { return *collective_; }
  const runtime::Nccl& nccl() const { return *nccl_; }
  runtime::NcclComm* comm() const { return comm_; }
  bool leads() const { return flags_.rank == 0; }

  /// Leaves the group, whatever goes on in it; `aborted`: somebody has aborted
  /// the communicator already.
  void give_up(bool aborted);

  /// Returns when all ranks have called it.
  void meet();
  /// Every rank's number, on every rank.
  std::vector<std::uint64_t> exchange(std::uint64_t mine);

 private:
  RankFlags flags_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<runtime::Nccl> nccl_;
  runtime::NcclComm* comm_ = nullptr;
  std::unique_ptr<Collective> collective_;
};

/// JSON texts: an array of checks, an object of times. Called by all ranks.
std::string run_checks(Rank& rank);
std::string run_speed(Rank& rank);
/// What ranks get when the last one stays away: an array of one check. Gives
/// the group up.
std::string run_late(Rank& rank);

}  // namespace logpjit::tests
