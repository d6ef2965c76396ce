// The distrustful reading of entry files.
#include "cache/entry_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "cache/trusted_path.hpp"

namespace logpjit::cache {
namespace {

using State = FileRead::State;

FileRead trouble(State state, std::string reason) {
  FileRead result;
  result.state = state;
  result.reason = std::move(reason);
  return result;
}

FileRead unreadable(int error) {
  // ESTALE: replaced on a network file system while it was read.
  if (error == -ENOENT || error == -ESTALE) return {};
  return trouble(State::kUnreadable, std::strerror(-error));
}

FileRead open_failure(int error) {
  if (error == ELOOP) return trouble(State::kDamaged, "it is a symbolic link");
  if (error == ENXIO) return trouble(State::kDamaged, "it is a socket");
  return unreadable(-error);
}

FileRead verified(std::span<const std::byte> bytes, const struct stat& status) {
  Decoded decoded = decode(bytes);
  FileRead result;
  result.reason = std::move(decoded.reason);
  switch (decoded.state) {
    case EntryState::kDamaged:
      result.state = State::kDamaged;
      break;
    case EntryState::kNewerFormat:
      result.state = State::kNewerFormat;
      break;
    case EntryState::kGood:
      result.state = State::kGood;
      result.entry = std::move(decoded.entry);
      result.stamp = status.st_mtim;
      result.bytes = bytes.size();
      break;
  }
  return result;
}

}  // namespace

FileRead read_entry_file(FileSystem& files, const std::string& path) {
  // O_NONBLOCK: a FIFO must not make the caller wait.
  OpenFile file(files, files.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0));
  if (!file.is_open()) return open_failure(file.error());
  struct stat status {};
  if (const int error = files.status(file.number(), status)) {
    return unreadable(error);
  }
  if (std::string why = distrust(status); !why.empty()) {
    return trouble(State::kDamaged, std::move(why));
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > kMaxEntryBytes) {
    return trouble(State::kDamaged, fmt::format("{} bytes long", size));
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  const ssize_t got =
      read_all(files, file.number(), bytes.data(), bytes.size(), 0);
  if (got < 0) return unreadable(static_cast<int>(got));
  return verified(std::span(bytes).first(static_cast<std::size_t>(got)),
                  status);
}

}  // namespace logpjit::cache
