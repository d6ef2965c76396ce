// dlopen with a search order, and where it found things.
#include "runtime/dynamic_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>

#include <system_error>

#include "logpjit/error.hpp"

namespace logpjit::runtime {
namespace {

namespace fs = std::filesystem;

fs::path path_of(void* handle) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return {};
  return map->l_name;
}

void* open_file(const std::string& file, std::vector<std::string>& tried) {
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    tried.push_back(reason != nullptr ? reason : file);
  }
  return handle;
}

[[noreturn]] void fail(const LibrarySearch& search,
                       const std::vector<std::string>& tried) {
  throw Error(ErrorCode::kUnavailable,
              fmt::format("{} is not available; tried: {}; name the file with "
                          "{}",
                          search.what, fmt::join(tried, "; "), search.option));
}

/// The first loaded object with one of `names`. Walking what is loaded costs
/// microseconds; asking dlopen for a name that is not costs a search on disk.
struct LoadedWalk {
  const std::vector<std::string>& names;
  std::string path;
};

int visit_loaded(dl_phdr_info* info, std::size_t, void* data) {
  auto& walk = *static_cast<LoadedWalk*>(data);
  const std::string_view path = info->dlpi_name;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  for (const std::string& name : walk.names) {
    if (file == name || file.starts_with(name + ".")) walk.path = path;
  }
  return walk.path.empty() ? 0 : 1;
}

/// Subfolders `pattern` of every folder below `root`, one level.
void add_below(std::vector<fs::path>& folders, const fs::path& root,
               const std::string& prefix, const fs::path& below) {
  std::error_code ignored;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(root, ignored)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    const fs::path folder = entry.path() / below;
    if (fs::is_directory(folder, ignored)) folders.push_back(folder);
  }
}

}  // namespace

DynamicLibrary::DynamicLibrary(void* handle)
    : handle_(handle), path_(path_of(handle)) {}

std::optional<DynamicLibrary> DynamicLibrary::find_loaded(
    const LibrarySearch& search) {
  if (!search.explicit_file.empty()) return std::nullopt;
  LoadedWalk walk{search.names, {}};
  dl_iterate_phdr(visit_loaded, &walk);
  if (walk.path.empty()) return std::nullopt;
  void* handle = dlopen(walk.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return std::nullopt;
  return DynamicLibrary(handle);
}

DynamicLibrary DynamicLibrary::open(const LibrarySearch& search) {
  if (auto loaded = find_loaded(search)) return *loaded;
  std::vector<std::string> tried;
  if (!search.explicit_file.empty()) {
    if (void* handle = open_file(search.explicit_file, tried)) {
      return DynamicLibrary(handle);
    }
    fail(search, tried);
  }
  if (const auto file = find_file(search)) {
    if (void* handle = open_file(file->string(), tried)) {
      return DynamicLibrary(handle);
    }
  }
  for (const std::string& name : search.names) {
    if (void* handle = open_file(name, tried)) return DynamicLibrary(handle);
  }
  fail(search, tried);
}

void* DynamicLibrary::find(const char* symbol) const {
  return dlsym(handle_, symbol);
}

std::optional<fs::path> find_file(const LibrarySearch& search) {
  std::error_code ignored;
  if (!search.explicit_file.empty()) {
    if (fs::exists(search.explicit_file, ignored)) return search.explicit_file;
    return std::nullopt;
  }
  const auto find_in =
      [&](const std::vector<fs::path>& folders) -> std::optional<fs::path> {
    for (const fs::path& folder : folders) {
      for (const std::string& name : search.names) {
        if (fs::exists(folder / name, ignored)) return folder / name;
      }
    }
    return std::nullopt;
  };
  if (auto file = find_in(search.folders)) return file;
  if (!search.known_folders) return std::nullopt;
  // Most machines have the toolkit's usual link: no need to look further.
  if (auto file = find_in({"/usr/local/cuda/lib64"})) return file;
  return find_in(known_library_folders());
}

std::vector<fs::path> known_library_folders() {
  std::vector<fs::path> folders;
  std::error_code ignored;
  for (const char* folder :
       {"/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib/wsl/lib"}) {
    if (fs::is_directory(folder, ignored)) folders.emplace_back(folder);
  }
  add_below(folders, "/usr/local", "cuda-", "lib64");
  for (const char* packages : {"site-packages", "dist-packages"}) {
    std::vector<fs::path> roots;
    for (const char* root : {"/usr/lib", "/usr/local/lib"}) {
      add_below(roots, root, "python3", packages);
    }
    for (const fs::path& root : roots) {
      add_below(folders, root / "nvidia", "", "lib");
    }
  }
  return folders;
}

}  // namespace logpjit::runtime
