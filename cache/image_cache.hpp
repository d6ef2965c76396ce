// Key -> Image: memory first, then directories, then the compile function.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/eviction.hpp"
#include "cache/file_system.hpp"
#include "cache/image.hpp"
#include "cache/key.hpp"
#include "cache/warnings.hpp"

namespace logpjit::cache {

struct CacheOptions {
  /// Where entries are read and written; nothing = memory only.
  std::optional<std::filesystem::path> directory;
  /// Read-only layers, searched in order after `directory`.
  std::vector<std::filesystem::path> read_only;
  /// A miss is Error{kNotCached} listing the key.
  bool never_compile = false;
  /// Every request compiles, nothing is kept, not even in memory: for cold
  /// measurements. Together with `never_compile`: Error{kInvalidArgument}.
  bool off = false;
  WarningSink warn;  ///< may be empty

  /// Of `directory`; exceeding one removes the entries unused for longest.
  Limits limits;
  /// Longest wait for another process that compiles the same key, seconds;
  /// then both compile.
  double lock_timeout_s = 60;
  /// Must outlive the cache; null = the real one.
  FileSystem* files = nullptr;
};

/// Where an image came from.
enum class Origin { kMemory, kDisk, kReadOnly, kCompiled };

struct Found {
  std::shared_ptr<const Image> image;
  Origin origin = Origin::kCompiled;
};

/// Safe to share between threads. One compile per key at a time within the
/// process (others wait for its result; a failure is not remembered) and, where
/// the file system has locks, between processes. Trouble with the cache itself
/// is a warning and never fails a call; errors of `compile` pass through.
class ImageCache {
 public:
  explicit ImageCache(CacheOptions options);
  ~ImageCache();
  ImageCache(const ImageCache&) = delete;
  ImageCache& operator=(const ImageCache&) = delete;

  /// Must not ask this cache for the same key again. An image without bytes is
  /// Error{kCompileFailed} and stored nowhere.
  using Compile = std::function<Image()>;
  Found find_or_compile(const Key& key, const Compile& compile);

  /// Looks, never compiles.
  std::optional<Found> find(const Key& key);

  /// A device refused the image of `key`: set the entry aside, so that the next
  /// `find_or_compile` compiles afresh, unless another process has put a
  /// different image in its place by then.
  void reject(const Key& key, const std::string& reason);

  const CacheOptions& options() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace logpjit::cache
