// Temporary template folders and processes for the scanner's tests.
#include "tests/generator/scan_process.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>

#include "generator/content.hpp"

namespace logpjit::generator {
namespace {

namespace fs = std::filesystem;

fs::path make_folder() {
  std::string pattern = (fs::temp_directory_path() / "scan_XXXXXX").string();
  return mkdtemp(pattern.data());
}

}  // namespace

std::string quoted(const fs::path& path) {
  return fmt::format("'{}'", path.string());
}

ProcessResult run_process(const std::string& command) {
  const fs::path folder = make_folder();
  const std::string line = fmt::format(
      "{} > {} 2> {}", command, quoted(folder / "out"), quoted(folder / "err"));
  const int status = std::system(line.c_str());
  ProcessResult result{WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                       read_content(folder / "out"),
                       read_content(folder / "err")};
  fs::remove_all(folder);
  return result;
}

TemplatesFolder::TemplatesFolder() : path_(make_folder()) {
  write("prelude/scan.h", read_content(fs::path(LOGPJIT_SOURCE_DIR) /
                                       "templates/prelude/scan.h"));
}

TemplatesFolder::~TemplatesFolder() { fs::remove_all(path_); }

void TemplatesFolder::write(std::string_view name,
                            std::string_view content) const {
  const fs::path file = path_ / name;
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
}

ProcessResult TemplatesFolder::scan(const std::string& arguments) const {
  return run_process(fmt::format("{} --templates-dir {} {}",
                                 quoted(LOGPJIT_SCAN_PROGRAM), quoted(path_),
                                 arguments));
}

}  // namespace logpjit::generator
