// Processes as ranks without a GPU: a star of TCP connections around rank 0.
// As a caller's own collective would be, it knows nothing of logpjit's inside.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "logpjit/error.hpp"
#include "tests/conformance/ranks/ranks.hpp"

namespace logpjit::tests {
namespace {

constexpr int kSeconds = 60;

/// A socket that gives up after a while.
class Connection {
 public:
  explicit Connection(int number) : number_(number) {
    if (number_ < 0) fail("connect");
    const timeval longest{kSeconds, 0};
    setsockopt(number_, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
  }
  ~Connection() {
    if (number_ >= 0) close(number_);
  }
  Connection(Connection&& other) noexcept
      : number_(std::exchange(other.number_, -1)) {}
  Connection& operator=(Connection&&) = delete;

  int number() const { return number_; }
  void send(const void* from, std::size_t bytes) const {
    const auto* at = static_cast<const char*>(from);
    while (bytes > 0) {
      const ssize_t done = ::send(number_, at, bytes, MSG_NOSIGNAL);
      if (done <= 0) fail("send to another rank");
      at += done;
      bytes -= static_cast<std::size_t>(done);
    }
  }
  void receive(void* to, std::size_t bytes) const {
    auto* at = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t done = ::recv(number_, at, bytes, MSG_WAITALL);
      if (done <= 0) fail("hear from another rank");
      at += done;
      bytes -= static_cast<std::size_t>(done);
    }
  }

  [[noreturn]] static void fail(const char* what) {
    const bool late = errno == EAGAIN || errno == EWOULDBLOCK;
    throw Error(late ? ErrorCode::kTimeout : ErrorCode::kDriver,
                fmt::format("cannot {}: {}", what, std::strerror(errno)));
  }

 private:
  int number_;
};

class SocketCollective final : public Collective {
 public:
  SocketCollective(int rank, int ranks) : rank_(rank), ranks_(ranks) {}
  /// Of rank 0: one of each other rank, in order. Of the others: rank 0's.
  std::vector<Connection> connections;

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  void all_gather(const void* send, void* receive, std::size_t bytes,
                  CUstream_st* /*stream*/) override {
    auto* all = static_cast<std::byte*>(receive);
    if (rank_ != 0) {
      connections[0].send(send, bytes);
      connections[0].receive(all, bytes * static_cast<std::size_t>(ranks_));
      return;
    }
    std::memmove(all, send, bytes);
    for (std::size_t i = 0; i < connections.size(); ++i) {
      connections[i].receive(all + (i + 1) * bytes, bytes);
    }
    for (const Connection& other : connections) {
      other.send(all, bytes * static_cast<std::size_t>(ranks_));
    }
  }

  void sum_words(void* words, std::size_t count, CUstream_st* stream) override {
    std::vector<std::uint32_t> all(count * static_cast<std::size_t>(ranks_));
    all_gather(words, all.data(), count * sizeof all[0], stream);
    auto* sums = static_cast<std::uint32_t*>(words);
    for (std::size_t i = 0; i < count; ++i) {
      sums[i] = 0;
      for (std::size_t from = i; from < all.size(); from += count) {
        sums[i] += all[from];
      }
    }
  }

 private:
  int rank_;
  int ranks_;
};

/// The id holds address and port, as NCCL's holds its maker's.
sockaddr_in address_of(const NcclId& id) {
  sockaddr_in address{};
  std::memcpy(&address, id.data(), sizeof address);
  return address;
}

}  // namespace

SocketGroup::SocketGroup(const std::string& address)
    : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in mine{};
  mine.sin_family = AF_INET;
  socklen_t size = sizeof mine;
  auto* generic = reinterpret_cast<sockaddr*>(&mine);
  if (listener_ < 0 ||
      inet_pton(AF_INET, address.c_str(), &mine.sin_addr) != 1 ||
      bind(listener_, generic, size) != 0 || listen(listener_, 64) != 0 ||
      getsockname(listener_, generic, &size) != 0) {
    Connection::fail("listen for the other ranks");
  }
  std::memcpy(id_.data(), &mine, sizeof mine);
}

SocketGroup::~SocketGroup() { close(listener_); }

std::unique_ptr<Collective> SocketGroup::meet(int ranks) const {
  auto made = std::make_unique<SocketCollective>(0, ranks);
  std::vector<int> numbers(static_cast<std::size_t>(ranks), -1);
  const timeval longest{kSeconds, 0};
  setsockopt(listener_, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
  for (int other = 1; other < ranks; ++other) {
    Connection joined(accept(listener_, nullptr, nullptr));
    std::int32_t rank = 0;
    joined.receive(&rank, sizeof rank);
    numbers.at(static_cast<std::size_t>(rank)) = dup(joined.number());
  }
  for (int other = 1; other < ranks; ++other) {
    made->connections.emplace_back(numbers[static_cast<std::size_t>(other)]);
  }
  return made;
}

std::unique_ptr<Collective> join_sockets(const NcclId& id, int rank,
                                         int ranks) {
  auto made = std::make_unique<SocketCollective>(rank, ranks);
  const sockaddr_in address = address_of(id);
  const int number = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (number < 0 || connect(number, reinterpret_cast<const sockaddr*>(&address),
                            sizeof address) != 0) {
    Connection::fail("reach rank 0");
  }
  made->connections.emplace_back(number);
  const std::int32_t mine = rank;
  made->connections[0].send(&mine, sizeof mine);
  return made;
}

}  // namespace logpjit::tests
