// The real command, run as users run it.
#include "tests/cli/program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace logpjit::cli {
namespace {

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

/// "NAME=" of "NAME=value".
std::string name_part(const std::string& variable) {
  return variable.substr(0, variable.find('=') + 1);
}

/// Later ones replace earlier ones of the same name.
void set_all(std::vector<std::string>& variables,
             const std::vector<std::string>& more) {
  for (const std::string& variable : more) {
    std::erase_if(variables, [&](const std::string& known) {
      return known.starts_with(name_part(variable));
    });
    variables.push_back(variable);
  }
}

std::vector<std::string> base_environment(const std::filesystem::path& cache) {
  std::vector<std::string> result{"LOGPJIT_CACHE_DIR=" + cache.string()};
  for (const char* name : {"PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH",
                           "LOGPJIT_NVRTC", "ASAN_OPTIONS", "CXX"}) {
    if (const char* value = std::getenv(name)) {
      result.push_back(std::string(name) + "=" + value);
    }
  }
  return result;
}

}  // namespace

ProgramResult run_logpjit(const std::filesystem::path& cache,
                          std::vector<std::string> words,
                          const std::vector<std::string>& environment) {
  const testing::TemporaryDirectory folder;
  const std::string out = folder.path() / "out";
  const std::string err = folder.path() / "err";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), kFlags, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), kFlags, 0600);
  words.insert(words.begin(), LOGPJIT_COMMAND);
  auto variables = base_environment(cache);
  set_all(variables, environment);
  pid_t child = 0;
  const int fault =
      posix_spawn(&child, LOGPJIT_COMMAND, &actions, nullptr,
                  pointers(words).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (fault != 0) throw std::runtime_error("the command cannot be started");
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content(out),
          content(err)};
}

const std::filesystem::path& shared_cache() {
  static const testing::TemporaryDirectory folder;
  return folder.path();
}

std::string report_schema() {
  std::ostringstream text;
  text
      << std::ifstream(LOGPJIT_SOURCE_DIR "/tuning/report.schema.json").rdbuf();
  return text.str();
}

}  // namespace logpjit::cli
