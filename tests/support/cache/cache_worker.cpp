// A process that uses an image cache, driven line by line by a test.
//
// cache_worker [--uid N] [--timeout S] [--counter FILE] [--file-limit BYTES]
//              [--limit-entries N] [--kill POINT]
//
// Each line "KEY SLEEP_MS DIRECTORY" on stdin is one find_or_compile in a fresh
// cache; compiling takes SLEEP_MS and adds a byte to the counter file. The
// answer is "<origin> <right|wrong>", then " | <warning>" for each.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>

#include "cache/image_cache.hpp"
#include "tests/support/cache/fault_file_system.hpp"
#include "tests/support/cache/samples.hpp"

namespace {

using logpjit::cache::CacheOptions;
using logpjit::cache::Image;
using logpjit::cache::ImageCache;
using logpjit::cache::Origin;
using logpjit::testing::Fault;
using logpjit::testing::FaultFileSystem;
using logpjit::testing::Operation;
using logpjit::testing::sample_image;
using logpjit::testing::sample_key;
using logpjit::testing::WarningLog;

struct Settings {
  long uid = -1;
  double timeout = 60;
  std::string counter;
  std::string kill;
  long file_limit = -1;
  std::uint64_t limit_entries = 0;
};

const std::map<std::string, Fault>& kill_points() {
  static const std::map<std::string, Fault> points = {
      {"after_create",
       {.operation = Operation::kOpen,
        .path_part = ".tmp-",
        .kill_after = true}},
      {"mid_write",
       {.operation = Operation::kWrite,
        .path_part = ".tmp-",
        .at_most = 100,
        .kill_after = true}},
      {"before_sync",
       {.operation = Operation::kSync,
        .path_part = ".tmp-",
        .kill_before = true}},
      {"before_rename",
       {.operation = Operation::kRename,
        .path_part = ".lpj",
        .kill_before = true}},
      {"after_rename",
       {.operation = Operation::kRename,
        .path_part = ".lpj",
        .kill_after = true}},
  };
  return points;
}

void apply(const Settings& settings) {
  if (settings.file_limit >= 0) {
    const auto bytes = static_cast<rlim_t>(settings.file_limit);
    const rlimit limit{bytes, bytes};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) throw CLI::RuntimeError(3);
  }
  if (settings.uid >= 0) {
    const auto id = static_cast<uid_t>(settings.uid);
    if (setresgid(id, id, id) != 0 || setresuid(id, id, id) != 0) {
      throw CLI::RuntimeError(4);
    }
  }
}

void count(int counter) {
  if (counter >= 0 && write(counter, "c", 1) != 1) throw CLI::RuntimeError(5);
}

std::string name(Origin origin) {
  switch (origin) {
    case Origin::kMemory:
      return "memory";
    case Origin::kDisk:
      return "disk";
    case Origin::kReadOnly:
      return "read_only";
    case Origin::kCompiled:
      return "compiled";
  }
  return "unknown";
}

class Worker {
 public:
  explicit Worker(const Settings& settings) : settings_(settings) {
    if (!settings.counter.empty()) {
      counter_ = open(settings.counter.c_str(),
                      O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    }
    if (!settings.kill.empty()) files_.add(kill_points().at(settings.kill));
  }

  std::string answer(int number, int sleep_ms, const std::string& directory) {
    WarningLog log;
    CacheOptions options;
    options.directory = directory;
    options.warn = log.sink();
    options.lock_timeout_s = settings_.timeout;
    options.files = &files_;
    if (settings_.limit_entries)
      options.limits.entries = settings_.limit_entries;
    ImageCache cache(options);
    const auto found = cache.find_or_compile(sample_key(number), [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(sleep_ms));
      count(counter_);
      return sample_image(number);
    });
    std::string text = name(found.origin);
    text += *found.image == sample_image(number) ? " right" : " wrong";
    for (const std::string& line : log.lines()) text += " | " + line;
    return text;
  }

 private:
  const Settings settings_;
  FaultFileSystem files_;
  int counter_ = -1;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("A cache user for tests");
  Settings settings;
  app.add_option("--uid", settings.uid);
  app.add_option("--timeout", settings.timeout);
  app.add_option("--counter", settings.counter);
  app.add_option("--file-limit", settings.file_limit);
  app.add_option("--limit-entries", settings.limit_entries);
  app.add_option("--kill", settings.kill);
  CLI11_PARSE(app, argc, argv);
  Worker worker(settings);
  apply(settings);
  int number = 0;
  int sleep_ms = 0;
  std::string directory;
  while (std::cin >> number >> sleep_ms >> directory) {
    std::cout << worker.answer(number, sleep_ms, directory) << std::endl;
  }
}
