// The walk from the root to a cache directory.
#include "cache/trusted_path.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace logpjit::cache {
namespace {

constexpr int kMaxLinks = 40;
constexpr mode_t kPrivate = 0700;

TrustedPath refused(std::string why) {
  return {TrustedPath::State::kRefused, {}, std::move(why)};
}

/// Last component first, so that a link's target goes on top.
void push_components(std::vector<std::string>& pending,
                     const std::filesystem::path& path) {
  std::vector<std::string> parts;
  for (const auto& part : path.relative_path()) parts.push_back(part.string());
  pending.insert(pending.end(), parts.rbegin(), parts.rend());
}

bool open_to_all(const struct stat& status) {
  return (status.st_mode & S_IWOTH) != 0;
}

class Walk {
 public:
  Walk(FileSystem& files, Role role, bool create)
      : files_(files), role_(role), create_(create) {}

  TrustedPath to(const std::filesystem::path& directory) {
    push_components(pending_, directory);
    if (const int error = files_.status("/", status_)) {
      return refused(fmt::format("/: {}", std::strerror(-error)));
    }
    while (!pending_.empty()) {
      const std::string part = std::move(pending_.back());
      pending_.pop_back();
      if (part.empty() || part == ".") continue;
      auto obstacle = part == ".." ? ascend() : descend(part);
      if (obstacle) return *std::move(obstacle);
    }
    if (std::string why = leaf_refusal(); !why.empty()) {
      return refused(std::move(why));
    }
    // Fails where the directory itself may not be searched.
    if (auto obstacle = look(current_ + "/.", status_)) {
      return *std::move(obstacle);
    }
    return {TrustedPath::State::kTrusted, current_, {}};
  }

 private:
  using Obstacle = std::optional<TrustedPath>;

  Obstacle ascend() {
    const auto slash = current_.rfind('/');
    current_.resize(slash == std::string::npos ? 0 : slash);
    return look(current_.empty() ? "/" : current_, status_);
  }

  Obstacle descend(const std::string& part) {
    const std::string next = current_ + "/" + part;
    struct stat status {};
    if (auto obstacle = look(next, status)) return obstacle;
    if (S_ISLNK(status.st_mode)) return follow(next, status);
    if (!S_ISDIR(status.st_mode)) {
      return refused(fmt::format("{} is not a directory", next));
    }
    if (open_to_all(status) && (status.st_mode & S_ISVTX) == 0) {
      return refused(fmt::format(
          "{} can be written by every user; run chmod o-w on it", next));
    }
    current_ = next;
    status_ = status;
    return std::nullopt;
  }

  Obstacle look(const std::string& path, struct stat& status) {
    int error = files_.status(path, status);
    if (error == -ENOENT && create_) {
      const int made = files_.make_directory(path, kPrivate);
      error = made == 0 || made == -EEXIST ? files_.status(path, status) : made;
    }
    if (error == 0) return std::nullopt;
    if (error == -ENOENT && !create_) {
      return TrustedPath{TrustedPath::State::kAbsent, {}, {}};
    }
    return refused(fmt::format("{}: {}", path, std::strerror(-error)));
  }

  Obstacle follow(const std::string& link, const struct stat& status) {
    if (open_to_all(status_) && status.st_uid != geteuid() &&
        status.st_uid != status_.st_uid) {
      return refused(fmt::format("{} is a link made by another user (uid {})",
                                 link, status.st_uid));
    }
    std::string target;
    if (const int error = files_.read_link(link, target)) {
      return refused(fmt::format("{}: {}", link, std::strerror(-error)));
    }
    if (++links_ > kMaxLinks) {
      return refused(fmt::format("{}: {}", link, std::strerror(ELOOP)));
    }
    const std::filesystem::path path = target;
    if (path.is_absolute()) {
      current_.clear();
      if (auto obstacle = look("/", status_)) return obstacle;
    }
    push_components(pending_, path);
    return std::nullopt;
  }

  std::string leaf_refusal() const {
    if (current_.empty()) return "the root directory is no cache directory";
    const uid_t user = geteuid();
    const bool owned = status_.st_uid == user ||
                       (role_ == Role::kReadOnly && status_.st_uid == 0);
    if (!owned) {
      return fmt::format("{} belongs to another user (uid {}, not {})",
                         current_, status_.st_uid, user);
    }
    if ((status_.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
      return fmt::format(
          "{} can be written by other users; run chmod go-w on it", current_);
    }
    return {};
  }

  FileSystem& files_;
  const Role role_;
  const bool create_;
  std::vector<std::string> pending_;
  std::string current_;  // resolved; empty is the root
  struct stat status_ {};
  int links_ = 0;
};

}  // namespace

TrustedPath trust(FileSystem& files, const std::filesystem::path& directory,
                  Role role, bool create) {
  if (!directory.is_absolute()) {
    return refused(
        fmt::format("\"{}\" is not an absolute path", directory.string()));
  }
  return Walk(files, role, create).to(directory);
}

std::string distrust(const struct stat& file) {
  if (!S_ISREG(file.st_mode)) return "it is not a regular file";
  if (file.st_uid != geteuid() && file.st_uid != 0) {
    return fmt::format("it belongs to another user (uid {})", file.st_uid);
  }
  if ((file.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return "other users may write it";
  }
  return {};
}

}  // namespace logpjit::cache
