// Setting damaged entries aside, a limited number of them.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "cache/entry_name.hpp"
#include "cache/layer.hpp"

namespace logpjit::cache {
namespace {

constexpr std::size_t kMaxBad = 16;

/// Leaves room for one more.
void drop_oldest_bad(FileSystem& files, const std::string& directory) {
  std::vector<std::string> names;
  if (files.list(directory, names) != 0) return;
  std::erase_if(names, [](const auto& name) { return !is_bad_name(name); });
  if (names.size() < kMaxBad) return;
  std::vector<std::tuple<time_t, long, std::string>> by_age;
  for (const std::string& name : names) {
    std::string path = fmt::format("{}/{}", directory, name);
    struct stat status {};
    if (files.status(path, status) != 0) continue;
    by_age.emplace_back(status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                        std::move(path));
  }
  std::sort(by_age.begin(), by_age.end());
  for (std::size_t i = 0; i + kMaxBad <= by_age.size(); ++i) {
    files.remove(std::get<std::string>(by_age[i]));
  }
}

}  // namespace

void set_aside(FileSystem& files, const std::string& directory,
               const std::string& name) {
  drop_oldest_bad(files, directory);
  const std::string path = fmt::format("{}/{}", directory, name);
  const std::string bad = path + std::string(kBadSuffix);
  if (files.rename(path, bad) != 0) files.remove(path);
}

}  // namespace logpjit::cache
