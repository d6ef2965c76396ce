// Libraries opened at run time: the driver, NVRTC, NCCL. Never linked.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace logpjit::runtime {

/// Where a library may be. Names are versioned, best first: asking for a plain
/// name could map a second copy beside the one another package loaded.
struct LibrarySearch {
  std::string what;           ///< "NVRTC", for messages
  std::string explicit_file;  ///< from the options; nothing else is tried
  std::string option;         ///< how to set it, for messages
  std::vector<std::string> names;
  std::vector<std::filesystem::path> folders;
  bool known_folders = false;  ///< look in known_library_folders() too
};

/// An opened library. Never closed: code of it may still run at exit.
class DynamicLibrary {
 public:
  /// Already loaded copies first, then the explicit file, then the folders,
  /// then the loader's own search. Error{kUnavailable} lists what was tried.
  static DynamicLibrary open(const LibrarySearch& search);
  /// A copy that is in the process already.
  static std::optional<DynamicLibrary> find_loaded(const LibrarySearch& search);

  /// Null when the library lacks it.
  void* find(const char* symbol) const;
  /// The file it was loaded from.
  const std::filesystem::path& path() const { return path_; }
  /// GNU build-id of the loaded copy in hex; empty without one.
  std::string build_id() const;

 private:
  explicit DynamicLibrary(void* handle);
  void* handle_;
  std::filesystem::path path_;
};

/// The first file the search would open without asking the loader.
std::optional<std::filesystem::path> find_file(const LibrarySearch& search);

/// GNU build-id of a shared object on disk, in hex; empty without one. Reads
/// headers and the note only, opens nothing as code.
std::string file_build_id(const std::filesystem::path& file);

/// Folders where distributions, toolkits and Python wheels put NVIDIA's
/// libraries, those that exist.
std::vector<std::filesystem::path> known_library_folders();

}  // namespace logpjit::runtime
