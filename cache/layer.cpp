// Reading from, publishing to and distrusting one cache directory.
#include "cache/layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "cache/atomic_file.hpp"
#include "cache/entry_name.hpp"

namespace logpjit::cache {
namespace {

constexpr std::time_t kStampSeconds = 3600;

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool matches_sealed(const std::string& text, const std::string& wanted) {
  const auto key = Key::parse(text);
  return key && key->text_without_compiler() == wanted;
}

}  // namespace

Layer::Layer(FileSystem& files, std::filesystem::path directory, Role role,
             Warnings& warnings)
    : files_(files),
      directory_(std::move(directory)),
      role_(role),
      warnings_(warnings) {}

std::optional<std::string> Layer::path(bool create) {
  TrustedPath found;
  {
    const std::lock_guard guard(mutex_);
    if (path_ || refused_) return path_;
    found = trust(files_, directory_, role_, create);
    if (found.state == TrustedPath::State::kTrusted) path_ = found.path;
    refused_ = found.state == TrustedPath::State::kRefused;
    if (path_) return path_;
  }
  if (found.state == TrustedPath::State::kRefused) {
    warnings_.once(
        "directory " + directory_.string(),
        fmt::format("{} is not used: {}", directory_.string(), found.refusal));
  } else if (role_ == Role::kReadOnly) {
    warnings_.once(
        "directory " + directory_.string(),
        fmt::format("{} is not used: it does not exist", directory_.string()));
  }
  return std::nullopt;
}

void Layer::forget_path() {
  const std::lock_guard guard(mutex_);
  path_.reset();
}

std::shared_ptr<LockFile> Layer::lock_file() {
  const auto directory = path(true);
  if (!directory) return nullptr;
  {
    const std::lock_guard guard(mutex_);
    if (lock_file_ != nullptr) return lock_file_;
  }
  auto made = std::make_shared<LockFile>(
      files_, *directory + "/" + std::string(kLockName));
  const std::lock_guard guard(mutex_);
  if (lock_file_ == nullptr) lock_file_ = std::move(made);
  return lock_file_;
}

std::optional<Image> Layer::read(const Key& key) {
  const auto directory = path(false);
  if (!directory) return std::nullopt;
  const std::string name = entry_name(key);
  FileRead found = read_entry_file(files_, *directory + "/" + name);
  const bool right = found.entry && found.entry->key_text == key.text();
  return accept(*directory, name, std::move(found), right);
}

std::optional<Image> Layer::read_sealed(const Key& key) {
  const auto directory = path(false);
  if (!directory) return std::nullopt;
  const std::string wanted = key.text_without_compiler();
  for (const std::string& name : sealed_names(*directory, sealed_ending(key))) {
    FileRead found = read_entry_file(files_, *directory + "/" + name);
    const bool right =
        found.entry && matches_sealed(found.entry->key_text, wanted);
    if (auto image = accept(*directory, name, std::move(found), right)) {
      return image;
    }
  }
  return std::nullopt;
}

std::optional<Image> Layer::accept(const std::string& directory,
                                   const std::string& name, FileRead found,
                                   bool right_key) {
  const std::string path = directory + "/" + name;
  switch (found.state) {
    case FileRead::State::kAbsent:
    case FileRead::State::kNewerFormat:
      return std::nullopt;
    case FileRead::State::kUnreadable:
      warnings_.once("read", fmt::format("cannot read {}: {}; compiling "
                                         "instead",
                                         path, found.reason));
      return std::nullopt;
    case FileRead::State::kGood:
      if (right_key) {
        renew(path, found.stamp);
        return std::move(found.entry->image);
      }
      found.reason = "it holds another key";
      break;
    case FileRead::State::kDamaged:
      break;
  }
  const bool ours = role_ == Role::kUser;
  warnings_.once("damaged",
                 fmt::format("{} is not used: {}{}", path, found.reason,
                             ours ? "; it is set aside and replaced" : ""));
  if (ours) cache::set_aside(files_, directory, name);
  return std::nullopt;
}

void Layer::renew(const std::string& path, const timespec& stamp) {
  if (role_ != Role::kUser) return;
  const std::time_t age = std::time(nullptr) - stamp.tv_sec;
  if (age > kStampSeconds || age < -kStampSeconds) files_.touch(path);
}

std::vector<std::string> Layer::sealed_names(const std::string& directory,
                                             const std::string& ending) {
  struct stat status {};
  if (files_.status(directory, status) != 0) return {};
  const std::lock_guard guard(mutex_);
  if (!same_time(listed_, status.st_mtim)) {
    std::vector<std::string> all;
    if (files_.list(directory, all) != 0) return {};
    names_.clear();
    for (std::string& name : all) {
      if (!is_entry_name(name)) continue;
      std::string end = name.substr(name.size() - ending.size());
      names_.emplace(std::move(end), std::move(name));
    }
    listed_ = status.st_mtim;
  }
  std::vector<std::string> result;
  const auto [begin, end] = names_.equal_range(ending);
  for (auto it = begin; it != end; ++it) result.push_back(it->second);
  std::sort(result.begin(), result.end());
  return result;
}

bool Layer::publish(const Key& key, std::span<const std::byte> entry) {
  constexpr int kAttempts = 2;  // the directory may have been removed
  int error = 0;
  for (int i = 0; i < kAttempts; ++i) {
    const auto directory = path(true);
    if (!directory) return false;
    error = publish_file(files_, *directory, entry_name(key), entry);
    if (error == 0) return true;
    if (error != -ENOENT) break;
    forget_path();
  }
  warnings_.once(
      "write",
      fmt::format("cannot write to {}: {}; what is compiled stays in memory",
                  directory_.string(), std::strerror(-error)));
  return false;
}

void Layer::set_aside(const std::string& name) {
  if (const auto directory = path(false)) {
    cache::set_aside(files_, *directory, name);
  }
}

}  // namespace logpjit::cache
