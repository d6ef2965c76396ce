// logpjit scan: the manifest of a template, by the program that reads C++.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <span>
#include <system_error>

#include "cli/commands.hpp"
#include "generator/manifest.hpp"
#include "logpjit/error.hpp"
#include "runtime/cpu/temporary_directory.hpp"

namespace logpjit::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "logpjit-scan";
constexpr const char* kPrelude = "prelude/scan.h";

/// Beside this program, else whatever PATH has.
std::string program_path() {
  std::error_code fault;
  const fs::path self = fs::read_symlink("/proc/self/exe", fault);
  const fs::path beside = self.parent_path() / kProgram;
  return !fault && fs::exists(beside, fault) ? beside.string() : kProgram;
}

void write_embedded(const fs::path& folder, const std::string& path) {
  fs::create_directories((folder / path).parent_path());
  runtime::write_file(folder / path,
                      std::as_bytes(std::span(generator::embedded_file(path))));
}

/// The files a template may include, as this library carries them.
void write_common_files(const fs::path& folder) {
  write_embedded(folder, kPrelude);
  for (const auto& each : generator::embedded_manifest().templates) {
    for (const auto& file : each.closure) {
      if (file.path.starts_with("common/")) write_embedded(folder, file.path);
    }
  }
}

/// Runs the program with this one's stdin, stdout and stderr.
int run_program(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  ::pid_t child = 0;
  const int fault = ::posix_spawnp(&child, command[0].c_str(), nullptr, nullptr,
                                   arguments.data(), environ);
  if (fault == ENOENT) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("{} is neither beside logpjit nor on PATH: build "
                            "it (it needs libclang) or add its folder to PATH",
                            kProgram));
  }
  if (fault != 0) {
    throw Error(
        ErrorCode::kIo,
        fmt::format("{} cannot be started: {}", command[0],
                    std::error_code(fault, std::generic_category()).message()));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return kFailed;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kFailed;
}

/// A template in a folder of templates is read with that folder's files, any
/// other with the library's own.
int scan(const std::string& file) {
  std::error_code fault;
  if (!fs::is_regular_file(file, fault)) {
    throw Error(ErrorCode::kIo,
                fmt::format("{}: cannot be read: give a template file", file));
  }
  const fs::path own = fs::absolute(file).parent_path();
  if (fs::is_regular_file(own / kPrelude, fault)) {
    return run_program({program_path(), "--templates-dir", own, file});
  }
  const runtime::TemporaryDirectory folder;
  write_common_files(folder.path());
  return run_program({program_path(), "--templates-dir", folder.path(), file});
}

}  // namespace

Action attach_scan(CLI::App& app) {
  auto file = std::make_shared<std::string>();
  app.add_option("template", *file, "A kernel template, TEMPLATE.cuh")
      ->required();
  return [file] { return scan(*file); };
}

}  // namespace logpjit::cli
