// The real command, run as users run it.
#include "tests/cli/program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>

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

/// A child whose output goes to files.
class Child {
 public:
  Child(const std::filesystem::path& cache, std::vector<std::string> words,
        const std::vector<std::string>& environment) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&actions, 1, out_.c_str(), kFlags, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err_.c_str(), kFlags, 0600);
    words.insert(words.begin(), LOGPJIT_COMMAND);
    auto variables = base_environment(cache);
    set_all(variables, environment);
    const int fault =
        posix_spawn(&id_, LOGPJIT_COMMAND, &actions, nullptr,
                    pointers(words).data(), pointers(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    if (fault != 0) throw std::runtime_error("the command cannot be started");
  }

  bool has_said(const std::string& text) const {
    return content(err_).find(text) != std::string::npos;
  }
  bool has_ended() {
    return waitpid(id_, &status_, WNOHANG) == id_ && (ended_ = true);
  }
  void send(int signal) const {
    if (!ended_) kill(id_, signal);  // else the id may be another's
  }
  ProgramResult wait() {
    if (!ended_) waitpid(id_, &status_, 0);
    return {WIFEXITED(status_) ? WEXITSTATUS(status_) : -1, content(out_),
            content(err_)};
  }

 private:
  const testing::TemporaryDirectory folder_;
  const std::string out_ = folder_.path() / "out";
  const std::string err_ = folder_.path() / "err";
  pid_t id_ = 0;
  int status_ = 0;
  bool ended_ = false;
};

}  // namespace

ProgramResult run_logpjit(const std::filesystem::path& cache,
                          std::vector<std::string> words,
                          const std::vector<std::string>& environment) {
  return Child(cache, std::move(words), environment).wait();
}

ProgramResult interrupt_logpjit(const std::filesystem::path& cache,
                                std::vector<std::string> words,
                                const std::string& said,
                                const std::vector<std::string>& environment) {
  Child child(cache, std::move(words), environment);
  while (!child.has_said(said) && !child.has_ended()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  child.send(SIGINT);
  return child.wait();
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
