// NCCL's functions for threads of one process on host memory. A communicator's
// failures are set through the environment of the test, by number of ranks:
// see kBroken and kAsynchronous.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

struct CUstream_st;

namespace {

constexpr int kSuccess = 0;
constexpr int kInternalError = 3;
constexpr int kRemoteError = 6;
/// Groups of this many ranks fail in every collective.
constexpr int kBroken = 5;
/// Groups of this many ranks report a failure when asked.
constexpr int kAsynchronous = 6;
/// Groups of this many ranks make collectives return at once, undone.
constexpr int kOnStreams = 3;

/// Ranks with one id meet here.
struct Group {
  std::mutex mutex;
  std::condition_variable all;
  int ranks = 0;
  int arrived = 0;
  std::uint64_t meeting = 0;
  int aborted = 0;
  std::vector<const void*> data;

  /// False when the group is given up meanwhile.
  bool meet() {
    std::unique_lock lock(mutex);
    const std::uint64_t mine = meeting;
    if (++arrived == ranks) {
      arrived = 0;
      ++meeting;
      all.notify_all();
      return true;
    }
    all.wait(lock, [&] { return meeting != mine || aborted > 0; });
    return meeting != mine;
  }
  void abort() {
    const std::lock_guard lock(mutex);
    ++aborted;
    all.notify_all();
  }
};

std::mutex groups_mutex;
std::map<std::string, std::shared_ptr<Group>> groups;
int next_id = 0;
std::atomic<int> aborts = 0;

}  // namespace

struct ncclComm {
  std::shared_ptr<Group> group;
  int rank = 0;
};

struct UniqueId {
  char internal[128];
};

extern "C" {

const char* ncclGetErrorString(int result) {
  if (result == kInternalError) return "internal error";
  return result == kRemoteError ? "remote process exited" : "no error";
}
int ncclGetVersion(int* version) {
  *version = 22705;
  return kSuccess;
}
int ncclGetUniqueId(UniqueId* id) {
  const std::lock_guard lock(groups_mutex);
  std::memset(id, 0, sizeof *id);
  std::memcpy(id->internal, &++next_id, sizeof next_id);
  return kSuccess;
}
int ncclCommInitRank(ncclComm** comm, int ranks, UniqueId id, int rank) {
  auto* made = new ncclComm;
  {
    const std::lock_guard lock(groups_mutex);
    auto& group = groups[std::string(id.internal, sizeof id.internal)];
    if (!group) group = std::make_shared<Group>();
    group->ranks = ranks;
    group->data.resize(static_cast<std::size_t>(ranks));
    made->group = group;
  }
  made->rank = rank;
  made->group->meet();
  *comm = made;
  return kSuccess;
}
int ncclCommDestroy(ncclComm* comm) {
  delete comm;
  return kSuccess;
}
/// The communicator itself is leaked: a call may be inside.
int ncclCommAbort(ncclComm* comm) {
  ++aborts;
  comm->group->abort();
  return kSuccess;
}
/// For tests: how often it was called.
int fake_nccl_aborts() { return aborts; }
int ncclCommCount(const ncclComm* comm, int* count) {
  *count = comm->group->ranks;
  return kSuccess;
}
int ncclCommUserRank(const ncclComm* comm, int* rank) {
  *rank = comm->rank;
  return kSuccess;
}
int ncclCommCuDevice(const ncclComm*, int* device) {
  *device = 0;
  return kSuccess;
}
int ncclCommGetAsyncError(ncclComm* comm, int* state) {
  *state = comm->group->ranks == kAsynchronous ? kRemoteError : kSuccess;
  return kSuccess;
}
int ncclAllGather(const void* send, void* receive, std::size_t bytes, int,
                  ncclComm* comm, CUstream_st*) {
  Group& group = *comm->group;
  if (group.ranks == kBroken) return kInternalError;
  if (group.ranks == kOnStreams) return kSuccess;
  group.data[static_cast<std::size_t>(comm->rank)] = send;
  if (!group.meet()) return kInternalError;
  for (std::size_t rank = 0; rank < group.data.size(); ++rank) {
    std::memmove(static_cast<char*>(receive) + rank * bytes, group.data[rank],
                 bytes);
  }
  group.meet();
  return kSuccess;
}
int ncclAllReduce(const void* send, void* receive, std::size_t count, int, int,
                  ncclComm* comm, CUstream_st*) {
  Group& group = *comm->group;
  group.data[static_cast<std::size_t>(comm->rank)] = send;
  if (!group.meet()) return kInternalError;
  std::vector<std::uint32_t> sums(count, 0);
  for (const void* theirs : group.data) {
    const auto* words = static_cast<const std::uint32_t*>(theirs);
    for (std::size_t i = 0; i < count; ++i) sums[i] += words[i];
  }
  group.meet();
  std::memcpy(receive, sums.data(), count * sizeof(std::uint32_t));
  return kSuccess;
}

}  // extern "C"
