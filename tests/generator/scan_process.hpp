// Runs logpjit-scan on templates that a test writes.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace logpjit::generator {

/// What a finished process left.
struct ProcessResult {
  int exit_code = -1;
  std::string out;
  std::string err;
};

/// The path as one word of a shell command line.
std::string quoted(const std::filesystem::path& path);

/// Runs a shell command line; throws nothing, -1 if it did not exit normally.
ProcessResult run_process(const std::string& command);

/// A templates folder of its own with the real prelude/scan.h; removed at the
/// end.
class TemplatesFolder {
 public:
  TemplatesFolder();
  ~TemplatesFolder();
  TemplatesFolder(const TemplatesFolder&) = delete;
  TemplatesFolder& operator=(const TemplatesFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Makes parent folders as needed.
  void write(std::string_view name, std::string_view content) const;
  /// `logpjit-scan --templates-dir <this> <arguments>`.
  ProcessResult scan(const std::string& arguments = "") const;

 private:
  std::filesystem::path path_;
};

}  // namespace logpjit::generator
