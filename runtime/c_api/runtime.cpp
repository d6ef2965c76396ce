// Runtimes made, described and destroyed through C.
#include "logpjit/runtime.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cache/file_system.hpp"
#include "cache/maintenance.hpp"
#include "logpjit/error.hpp"
#include "runtime/c_api/handles.hpp"
#include "runtime/c_api/status.hpp"
#include "runtime/c_api/structs.hpp"
#include "runtime/engine.hpp"

namespace logpjit::c_api {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> paths_of(std::string_view list) {
  std::vector<fs::path> paths;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) paths.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return paths;
}

LogSink log_sink(const logpjit_options& given) {
  if (given.log == nullptr) return {};
  return [log = given.log, user = given.log_user](const std::string& line) {
    log(user, line.c_str());
  };
}

void set_cache(const logpjit_options& given, Options& options) {
  if (given.cache_directory != nullptr) {
    options.cache_directory.reset();
    if (*given.cache_directory != '\0') {
      options.cache_directory = given.cache_directory;
    }
  }
  if (given.read_only_caches != nullptr) {
    options.read_only_caches = paths_of(given.read_only_caches);
  }
  if (given.never_compile != 0) options.never_compile = true;
}

void set_fallback(const char* call, int fallback, Options& options) {
  switch (fallback) {
    case LOGPJIT_FALLBACK_UNSET:
      return;
    case LOGPJIT_FALLBACK_WHEN_NEEDED:
      options.fallback = FallbackUse::kWhenNeeded;
      return;
    case LOGPJIT_FALLBACK_NEVER:
      options.fallback = FallbackUse::kNever;
      return;
    case LOGPJIT_FALLBACK_ALWAYS:
      options.fallback = FallbackUse::kAlways;
      return;
    default:
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: fallback: {} is not between 0 and 3", call,
                              fallback));
  }
}

Options options_of(const char* call, const logpjit_options* caller) {
  logpjit_options given{};
  given.use_environment = 1;
  if (caller != nullptr) given = whole(call, caller);
  Options options;
  if (given.use_environment != 0) {
    options = Options::from_environment(log_sink(given));
  }
  options.log = log_sink(given);
  set_cache(given, options);
  set_fallback(call, given.fallback, options);
  const auto replace = [](const char* text, std::string& value) {
    if (text != nullptr) value = text;
  };
  replace(given.device, options.device);
  replace(given.driver_library, options.driver_library);
  replace(given.nvrtc_library, options.nvrtc_library);
  replace(given.host_compiler, options.host_compiler);
  if (given.compile_timeout_s < 0) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: compile_timeout_s: {} is below 0", call,
                            given.compile_timeout_s));
  }
  if (given.compile_timeout_s > 0) {
    options.compile_timeout_s = given.compile_timeout_s;
  }
  if (given.cpu_threads < 0) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: cpu_threads: {} is below 0", call, given.cpu_threads));
  }
  if (given.cpu_threads > 0) options.cpu_threads = given.cpu_threads;
  return options;
}

std::string joined(const std::vector<fs::path>& paths) {
  std::vector<std::string> texts;
  texts.reserve(paths.size());
  for (const fs::path& path : paths) texts.push_back(path.string());
  return fmt::format("{}", fmt::join(texts, ":"));
}

logpjit_cache_info cache_of(const logpjit_runtime& handle) {
  logpjit_cache_info info{};
  info.read_only_caches = handle.read_only_caches.c_str();
  if (!handle.on_disk) return info;
  info.directory = handle.directory.c_str();
  for (const cache::Listed& entry :
       cache::list_entries(cache::real_file_system(), handle.directory)) {
    ++info.entries;
    info.bytes += entry.bytes;
  }
  return info;
}

}  // namespace
}  // namespace logpjit::c_api

using logpjit::c_api::fill;
using logpjit::c_api::guarded;
using logpjit::c_api::require;

int logpjit_runtime_create(const logpjit_options* options,
                           logpjit_runtime** runtime) {
  constexpr const char* kCall = "runtime_create";
  if (runtime != nullptr) *runtime = nullptr;
  return guarded([&] {
    require(runtime, kCall, "runtime");
    const logpjit::Options made = logpjit::c_api::options_of(kCall, options);
    auto handle = std::make_unique<logpjit_runtime>(made);
    handle->on_disk = made.cache_directory.has_value();
    if (handle->on_disk) handle->directory = made.cache_directory->string();
    handle->read_only_caches = logpjit::c_api::joined(made.read_only_caches);
    *runtime = handle.release();
  });
}

void logpjit_runtime_destroy(logpjit_runtime* runtime) { delete runtime; }

int logpjit_runtime_device(const logpjit_runtime* runtime,
                           logpjit_device_info* info) {
  constexpr const char* kCall = "runtime_device";
  return guarded([&] {
    require(runtime, kCall, "runtime");
    const logpjit::DeviceInfo& known = runtime->runtime.device();
    fill(kCall,
         {.size = 0,
          .name = known.name.c_str(),
          .software = known.software.c_str(),
          .l2_bytes = known.l2_bytes,
          .shared_bytes_per_block = known.shared_bytes_per_block,
          .memory_bytes = known.memory_bytes,
          .memory_gb_per_s = known.memory_gb_per_s,
          .kind = static_cast<int32_t>(known.id.kind),
          .index = known.id.index,
          .major = known.major,
          .minor = known.minor,
          .multiprocessors = known.multiprocessors,
          .reserved = 0},
         info);
  });
}

int logpjit_runtime_counters(const logpjit_runtime* runtime,
                             logpjit_counters* counters) {
  constexpr const char* kCall = "runtime_counters";
  return guarded([&] {
    require(runtime, kCall, "runtime");
    const logpjit::Counters now = runtime->runtime.counters();
    fill(kCall,
         {.size = 0,
          .compiled = now.compiled,
          .disk_hits = now.disk_hits,
          .sealed_hits = now.sealed_hits,
          .rejected = now.rejected,
          .fallbacks = now.fallbacks,
          .loaded = now.loaded},
         counters);
  });
}

int logpjit_runtime_cache(logpjit_runtime* runtime, logpjit_cache_info* info) {
  constexpr const char* kCall = "runtime_cache";
  return guarded([&] {
    require(runtime, kCall, "runtime");
    fill(kCall, logpjit::c_api::cache_of(*runtime), info);
  });
}

int logpjit_runtime_compiler(logpjit_runtime* runtime, const char** identity) {
  constexpr const char* kCall = "runtime_compiler";
  return guarded([&] {
    require(runtime, kCall, "runtime");
    require(identity, kCall, "identity");
    std::string found = runtime->runtime.engine().compiler().identity();
    const std::lock_guard lock(runtime->compiler_mutex);
    if (runtime->compiler.empty()) runtime->compiler = std::move(found);
    *identity = runtime->compiler.c_str();
  });
}
