// The search through /proc/<pid>/fdinfo for the holder of a lock.
#include "cache/lock_holder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <vector>

namespace logpjit::cache {
namespace {

std::string small_file(FileSystem& files, const std::string& path) {
  const OpenFile file(files, files.open(path, O_RDONLY | O_NONBLOCK, 0));
  std::string text;
  if (!file.is_open()) return text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t got = files.read(file.number(), buffer.data(), buffer.size(),
                                   static_cast<off_t>(text.size()));
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

bool is_number(const std::string& name) {
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

bool holds(FileSystem& files, const std::string& process,
           const std::string& lock) {
  std::vector<std::string> numbers;
  const std::string folder = "/proc/" + process + "/fdinfo";
  if (files.list(folder, numbers) != 0) return false;
  return std::any_of(
      numbers.begin(), numbers.end(), [&](const std::string& number) {
        return small_file(files, folder + "/" + number).find(lock) !=
               std::string::npos;
      });
}

}  // namespace

std::string lock_holder(FileSystem& files, const std::string& lock_path,
                        off_t offset) {
  struct stat status {};
  std::vector<std::string> processes;
  if (files.status(lock_path, status) == 0) files.list("/proc", processes);
  // As the kernel prints it: device, inode, first and last byte.
  const std::string lock =
      fmt::format(" {:02x}:{:02x}:{} {} {}\n", major(status.st_dev),
                  minor(status.st_dev), status.st_ino, offset, offset);
  for (const std::string& process : processes) {
    if (!is_number(process) || !holds(files, process, lock)) continue;
    std::string name = small_file(files, "/proc/" + process + "/comm");
    if (name.ends_with('\n')) name.pop_back();
    return fmt::format("process {} ({})", process, name);
  }
  return "a process that cannot be seen from here (another user's, or in "
         "another container or machine)";
}

}  // namespace logpjit::cache
