// How the ranks of a vocab-parallel operation reach each other.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "logpjit/api.hpp"
#include "logpjit/runtime.hpp"

namespace logpjit {

/// One rank's end of a group. Calls are in the same order on all ranks, are
/// ordered on their stream, and may be captured where the library behind can
/// be. Failures are Error: kDriver with the library's words, kTimeout,
/// kInvalidArgument for ranks that do not fit together. Used by one thread at a
/// time. Callers may derive their own: MPI, torch.distributed.
class LOGPJIT_API Collective {
 public:
  virtual ~Collective();
  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  /// `receive` becomes every rank's `bytes` bytes of `send`, in rank order.
  /// `send` may be the rank's own place in `receive`.
  virtual void all_gather(const void* send, void* receive, std::size_t bytes,
                          CUstream_st* stream) = 0;
  /// Adds up `count` 32-bit words over the ranks, in place, modulo 2^32. Only
  /// used where all ranks but one hold 0: the result is a copy.
  virtual void sum_words(void* words, std::size_t count,
                         CUstream_st* stream) = 0;

  /// Throws when an earlier call is known to have failed; never waits.
  virtual void poll() {}
  /// The group is given up: no rank waits for this one any longer.
  virtual void abort(const std::string& why);
};

/// What the ranks of an NCCL group share, made on one of them and carried to
/// the others by the caller (a file, a socket, MPI). It holds the maker's
/// address: NCCL's own bootstrap connects ranks on any number of hosts.
using NcclId = std::array<char, 128>;

/// Opens libnccl (an already loaded copy first, then Options::nccl_library,
/// then versioned names, then well-known folders). Error{kUnavailable} without
/// it.
LOGPJIT_API NcclId make_nccl_id(const Options& options);
/// "2.27.5", as the library says.
LOGPJIT_API std::string nccl_version(const Options& options);

/// Joins a group on the runtime's device; returns once all ranks have, or
/// throws Error{kTimeout} after `timeout_s`. A collective that waits as long on
/// the host, as first ones do where a rank never comes, gives the group up with
/// the same error.
LOGPJIT_API std::unique_ptr<Collective> join_nccl(Runtime& runtime,
                                                  const NcclId& id, int rank,
                                                  int ranks,
                                                  double timeout_s = 120);
/// Works on the caller's `ncclComm_t`, which stays the caller's and must
/// outlive the result; one that was given up is aborted.
/// Error{kInvalidArgument} when it is of another device.
LOGPJIT_API std::unique_ptr<Collective> use_nccl(Runtime& runtime,
                                                 void* communicator,
                                                 double timeout_s = 120);

/// Threads of this process as ranks, memory of the host (the CPU device). Each
/// end belongs to one thread. A rank that waits longer than `timeout_s`, or
/// whose group another rank has left or aborted, gets an Error.
LOGPJIT_API std::vector<std::unique_ptr<Collective>> make_threads_group(
    int ranks, double timeout_s = 60);

}  // namespace logpjit
