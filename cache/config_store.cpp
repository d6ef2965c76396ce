// The config file: reading around damage, appending under the lock.
#include "cache/config_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <set>
#include <span>
#include <utility>

#include "cache/atomic_file.hpp"
#include "cache/config_line.hpp"
#include "cache/entry_name.hpp"
#include "cache/file_lock.hpp"
#include "cache/layer.hpp"
#include "logpjit/error.hpp"

namespace logpjit::cache {
namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{64} << 20;
constexpr std::chrono::seconds kLockTimeout{10};

struct Line {
  std::string text;  // with its line break
  ParsedLine parsed;
};

/// 0 or -errno, with why in `problem` where errno does not say it.
int read_text(FileSystem& files, const std::string& path, std::string& text,
              std::string& problem) {
  const OpenFile file(files,
                      files.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0));
  struct stat status {};
  int error = -file.error();
  if (error == 0) error = files.status(file.number(), status);
  if (error != 0) return error;
  problem = distrust(status);
  if (static_cast<std::uint64_t>(status.st_size) > kMaxFileBytes) {
    problem = "it is too large";
  }
  if (!problem.empty()) return -EINVAL;
  text.resize(static_cast<std::size_t>(status.st_size));
  const ssize_t got =
      read_all(files, file.number(), text.data(), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return got < 0 ? static_cast<int>(got) : 0;
}

std::vector<Line> split(std::string_view text) {
  std::vector<Line> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (end == text.npos) break;  // a writer is in the middle of it
    const std::string_view line = text.substr(0, end);
    lines.push_back({std::string(line) + "\n", parse_line(line)});
    text.remove_prefix(end + 1);
  }
  return lines;
}

bool blank(const Line& line) { return line.text == "\n"; }

/// Drops records that a later line supersedes.
void keep_last(std::vector<Line>& lines) {
  using Subject = std::pair<std::string, std::map<std::string, std::string>>;
  std::set<Subject> later;
  std::vector<Line> kept;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const auto& record = line->parsed.record;
    if (record && !later.insert({record->spec, record->device}).second) {
      continue;
    }
    kept.push_back(std::move(*line));
  }
  lines.assign(std::make_move_iterator(kept.rbegin()),
               std::make_move_iterator(kept.rend()));
}

bool ends_in_the_middle(FileSystem& files, int file, off_t size) {
  char last = '\n';
  return size > 0 && files.read(file, &last, 1, size - 1) == 1 && last != '\n';
}

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

struct ConfigStore::State {
  State(Role given, WarningSink warn, FileSystem* other)
      : files(other ? *other : real_file_system()),
        warnings(std::move(warn)),
        role(given) {}

  std::optional<std::string> path(bool create) {
    const auto directory = home ? home->path(create) : std::nullopt;
    if (!directory) return std::nullopt;
    return *directory + "/" + std::string(kConfigsName);
  }

  bool failed(const std::string& path, const std::string& why) {
    warnings.once("configs", fmt::format("cannot store tuned configs in {}: {}",
                                         path, why));
    return false;
  }

  std::vector<Line> lines(const std::string& path);
  void report_damage(const std::string& path, const std::vector<Line>& lines);
  bool write_end(const std::string& path, const std::string& text, bool locked);

  FileSystem& files;
  Warnings warnings;
  const Role role;
  std::optional<Layer> home;
};

void ConfigStore::State::report_damage(const std::string& path,
                                       const std::vector<Line>& lines) {
  std::size_t first = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const ParsedLine& parsed = lines[i].parsed;
    if (blank(lines[i]) || parsed.record || parsed.newer) continue;
    if (count++ == 0) first = i + 1;
  }
  if (count == 0) return;
  warnings.once("config lines",
                fmt::format("{}:{}: not a tuned config; skipped ({} such "
                            "lines in all)",
                            path, first, count));
}

std::vector<Line> ConfigStore::State::lines(const std::string& path) {
  std::string text;
  std::string problem;
  const int error = read_text(files, path, text, problem);
  if (error == -ENOENT) return {};
  if (error != 0) {
    if (problem.empty()) problem = std::strerror(-error);
    warnings.once("read configs",
                  fmt::format("{} is not used: {}", path, problem));
    return {};
  }
  return split(text);
}

/// What is cut short is taken back, where nobody else can have written since.
bool ConfigStore::State::write_end(const std::string& path,
                                   const std::string& text, bool locked) {
  constexpr int kFlags = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK;
  OpenFile file(files, files.open(path, kFlags, 0644));
  struct stat status {};
  int error = -file.error();
  if (error == 0) error = files.status(file.number(), status);
  if (error != 0) return failed(path, std::strerror(-error));
  if (std::string why = distrust(status); !why.empty()) {
    return failed(path, why);
  }
  const bool cut = ends_in_the_middle(files, file.number(), status.st_size);
  const std::string whole = cut ? "\n" + text : text;
  error = write_all(files, file.number(), whole.data(), whole.size());
  if (error == 0) {
    error = files.sync(file.number());
  } else if (locked) {
    files.truncate(file.number(), status.st_size);
  }
  return error == 0 || failed(path, std::strerror(-error));
}

ConfigStore::ConfigStore(std::optional<std::filesystem::path> directory,
                         Role role, WarningSink warn, FileSystem* files)
    : state_(std::make_unique<State>(role, std::move(warn), files)) {
  if (directory) {
    state_->home.emplace(state_->files, *std::move(directory), role,
                         state_->warnings);
  }
}

ConfigStore::~ConfigStore() = default;

std::vector<ConfigRecord> ConfigStore::load() {
  std::vector<ConfigRecord> records;
  const auto path = state_->path(false);
  if (!path) return records;
  std::vector<Line> lines = state_->lines(*path);
  state_->report_damage(*path, lines);
  keep_last(lines);
  for (Line& line : lines) {
    if (line.parsed.record) {
      records.push_back(*std::move(line.parsed.record));
    }
  }
  return records;
}

bool ConfigStore::append(const std::vector<ConfigRecord>& records) {
  std::string text;
  for (const ConfigRecord& record : records) {
    for (double number : {record.time_us, record.spread}) {
      if (std::isfinite(number) && number >= 0) continue;
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("tuned config: time or spread {} of \"{}\" is no "
                              "measurement",
                              number, record.spec));
    }
    text += format_line(record);
  }
  const auto path =
      state_->role == Role::kUser ? state_->path(true) : std::nullopt;
  if (!path || text.empty()) return path.has_value();
  // A lock file of its own, so that it excludes other threads, too.
  LockFile lock(state_->files, state_->home->lock_file()->path());
  const auto held = lock.acquire(kConfigsLock, kLockTimeout);
  return state_->write_end(*path, text,
                           held.outcome == LockFile::Outcome::kHeld);
}

bool ConfigStore::compact() {
  const auto path =
      state_->role == Role::kUser ? state_->path(false) : std::nullopt;
  if (!path) return false;
  LockFile lock(state_->files, state_->home->lock_file()->path());
  const auto held = lock.acquire(kConfigsLock, kLockTimeout);
  if (held.outcome != LockFile::Outcome::kHeld) return false;
  std::vector<Line> lines = state_->lines(*path);
  if (lines.empty()) return false;
  keep_last(lines);
  std::string text;
  for (const Line& line : lines) {
    if (line.parsed.record || line.parsed.newer) text += line.text;
  }
  const int error =
      publish_file(state_->files, path->substr(0, path->rfind('/')),
                   std::string(kConfigsName), as_bytes(text));
  return error == 0 || state_->failed(*path, std::strerror(-error));
}

}  // namespace logpjit::cache
