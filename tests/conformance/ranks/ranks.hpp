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
};

/// One rank, joined to the others: a thread or a process.
class Rank {
 public:
  Rank(const RankFlags& flags, const NcclId& id);
  ~Rank();

  const RankFlags& flags() const { return flags_; }
  Runtime& runtime() { return *runtime_; }
  runtime::Device& device() const;
  Collective& collective() { return *collective_; }
  const runtime::Nccl& nccl() const { return *nccl_; }
  runtime::NcclComm* comm() const { return comm_; }
  bool leads() const { return flags_.rank == 0; }

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

}  // namespace logpjit::tests
