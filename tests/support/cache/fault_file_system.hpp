// A file system that fails on request, in front of the real one.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "cache/file_system.hpp"

namespace logpjit::testing {

enum class Operation {
  kOpen,
  kClose,
  kRead,
  kWrite,
  kSync,
  kTruncate,
  kStatus,
  kReadLink,
  kRename,
  kRemove,
  kMakeDirectory,
  kTouch,
  kList,
  kLock,
  kUnlock,
};

/// What befalls calls of one operation on paths that contain `path_part`.
struct Fault {
  Operation operation = Operation::kOpen;
  std::string path_part = {};
  int error = 0;             ///< errno to return instead of calling
  std::size_t at_most = 0;   ///< bytes a read or write transfers; 0 = all
  bool kill_before = false;  ///< SIGKILL to this process
  bool kill_after = false;   ///< the same, once the call is done
  int skip = 0;              ///< matching calls left alone at first
  int times = 1'000'000;     ///< matching calls that it then befalls
};

class FaultFileSystem : public cache::FileSystem {
 public:
  explicit FaultFileSystem(std::vector<Fault> faults = {})
      : faults_(std::move(faults)) {}

  void add(Fault fault);
  void clear();
  /// Calls of an operation so far, whatever became of them.
  int calls(Operation operation) const;
  /// Flags of all opens of paths that contain `path_part`.
  std::vector<int> flags_of(const std::string& path_part) const;

  int open(const std::string& path, int flags, mode_t mode) override;
  int close(int file) override;
  ssize_t read(int file, void* to, std::size_t bytes, off_t offset) override;
  ssize_t write(int file, const void* from, std::size_t bytes) override;
  int sync(int file) override;
  int truncate(int file, off_t size) override;
  int status(int file, struct stat& result) override;
  int status(const std::string& path, struct stat& result) override;
  int read_link(const std::string& path, std::string& target) override;
  int rename(const std::string& from, const std::string& to) override;
  int remove(const std::string& path) override;
  int make_directory(const std::string& path, mode_t mode) override;
  int touch(const std::string& path) override;
  int list(const std::string& path, std::vector<std::string>& names) override;
  int lock(int file, off_t offset) override;
  int unlock(int file, off_t offset) override;

 private:
  Fault fate(Operation operation, const std::string& path);
  std::string path_of(int file) const;
  template <class Call>
  auto befall(Operation operation, const std::string& path, Call call)
      -> decltype(call(std::size_t{}));

  mutable std::mutex mutex_;
  std::vector<Fault> faults_;
  std::map<Operation, int> calls_;
  std::map<int, std::string> paths_;
  std::vector<std::pair<std::string, int>> opens_;
};

}  // namespace logpjit::testing
