// Walking a cache directory on someone's behalf.
#include "cache/maintenance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cache/entry_file.hpp"
#include "cache/entry_name.hpp"
#include "cache/key.hpp"
#include "logpjit/error.hpp"

namespace logpjit::cache {
namespace {

constexpr std::size_t kShortestPrefix = 4;

std::vector<std::string> sorted_names(FileSystem& files,
                                      const std::string& directory) {
  std::vector<std::string> names;
  if (const int error = files.list(directory, names)) {
    throw Error(ErrorCode::kIo, fmt::format("cannot list {}: {}", directory,
                                            std::strerror(-error)));
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool named_rightly(const std::string& name, const Entry& entry) {
  const auto key = Key::parse(entry.key_text);
  return key && entry_name(*key) == name;
}

/// Empty when nothing is wrong with it.
std::string what_is_wrong(const std::string& name, const FileRead& found) {
  switch (found.state) {
    case FileRead::State::kUnreadable:
    case FileRead::State::kDamaged:
      return found.reason;
    case FileRead::State::kGood:
      return named_rightly(name, *found.entry) ? "" : "it holds another key";
    case FileRead::State::kAbsent:
    case FileRead::State::kNewerFormat:
      break;
  }
  return {};
}

std::optional<Listed> listed(FileSystem& files, const std::string& directory,
                             const std::string& name) {
  FileRead found = read_entry_file(files, directory + "/" + name);
  if (!found.entry || !named_rightly(name, *found.entry)) return std::nullopt;
  return Listed{name, *std::move(found.entry), found.bytes, found.stamp.tv_sec};
}

}  // namespace

std::optional<std::string> trusted_directory(
    FileSystem& files, const std::filesystem::path& directory, Role role,
    bool create) {
  TrustedPath found = trust(files, directory, role, create);
  if (found.state == TrustedPath::State::kAbsent) return std::nullopt;
  if (found.state == TrustedPath::State::kRefused) {
    throw Error(ErrorCode::kIo, fmt::format("cache directory {}: {}",
                                            directory.string(), found.refusal));
  }
  return found.path;
}

void each_entry(FileSystem& files, const std::filesystem::path& directory,
                Role role, const std::function<void(Listed)>& use) {
  const auto path = trusted_directory(files, directory, role);
  if (!path) return;
  for (const std::string& name : sorted_names(files, *path)) {
    if (!is_entry_name(name)) continue;
    if (auto found = listed(files, *path, name)) use(*std::move(found));
  }
}

std::vector<Listed> list_entries(FileSystem& files,
                                 const std::filesystem::path& directory,
                                 Role role) {
  std::vector<Listed> result;
  each_entry(files, directory, role, [&](Listed found) {
    found.entry.image.bytes = {};
    result.push_back(std::move(found));
  });
  return result;
}

Listed find_entry(FileSystem& files, const std::filesystem::path& directory,
                  const std::string& prefix, Role role) {
  std::vector<std::string> matching;
  const auto path = trusted_directory(files, directory, role);
  if (path && prefix.size() >= kShortestPrefix) {
    for (const std::string& name : sorted_names(files, *path)) {
      if (is_entry_name(name) && name.starts_with(prefix)) {
        matching.push_back(name);
      }
    }
  }
  if (matching.size() != 1) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{} entries in {} begin with \"{}\"; give {} or more "
                    "digits of one entry's hash",
                    matching.size(), directory.string(), prefix,
                    kShortestPrefix));
  }
  auto found = listed(files, *path, matching.front());
  if (!found) {
    throw Error(ErrorCode::kIo,
                fmt::format("{}/{} is damaged; check the cache with repair",
                            *path, matching.front()));
  }
  return *std::move(found);
}

CheckResult check_entries(FileSystem& files,
                          const std::filesystem::path& directory, bool repair,
                          Role role) {
  CheckResult result;
  const auto path = trusted_directory(files, directory, role);
  if (!path) return result;
  result.repaired = repair;
  const auto remove = [&](const std::string& file) {
    const int error = repair ? files.remove(file) : 0;
    if (error != 0 && error != -ENOENT) result.repaired = false;
  };
  for (const std::string& name : sorted_names(files, *path)) {
    const std::string file = *path + "/" + name;
    if (is_bad_name(name) || is_temporary_name(name)) {
      result.debris.push_back(name);
      remove(file);
    }
    if (!is_entry_name(name)) continue;
    const FileRead found = read_entry_file(files, file);
    if (found.state == FileRead::State::kNewerFormat) ++result.newer_format;
    if (std::string why = what_is_wrong(name, found); !why.empty()) {
      result.problems.push_back({name, std::move(why)});
      remove(file);
    } else if (found.state == FileRead::State::kGood) {
      ++result.good;
    }
  }
  return result;
}

std::uint64_t clear_entries(FileSystem& files,
                            const std::filesystem::path& directory) {
  std::uint64_t removed = 0;
  const auto path = trusted_directory(files, directory, Role::kUser);
  if (!path) return removed;
  for (const std::string& name : sorted_names(files, *path)) {
    const bool entry = is_entry_name(name);
    if (!entry && !is_bad_name(name) && !is_temporary_name(name)) continue;
    const int error = files.remove(*path + "/" + name);
    if (error != 0 && error != -ENOENT) {
      throw Error(ErrorCode::kIo, fmt::format("cannot remove {}/{}: {}", *path,
                                              name, std::strerror(-error)));
    }
    if (entry && error == 0) ++removed;
  }
  return removed;
}

TrimResult trim_entries(FileSystem& files,
                        const std::filesystem::path& directory,
                        const Limits& limits) {
  const auto path = trusted_directory(files, directory, Role::kUser);
  return path ? trim(files, *path, limits) : TrimResult{};
}

}  // namespace logpjit::cache
