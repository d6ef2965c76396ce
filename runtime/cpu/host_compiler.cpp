// Finds the compiler, asks it who it is, and runs it on one source at a time.
#include "runtime/cpu/host_compiler.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

#include "logpjit/error.hpp"
#include "runtime/compile_gate.hpp"
#include "runtime/compile_log.hpp"
#include "runtime/cpu/process.hpp"
#include "runtime/cpu/temporary_directory.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace logpjit::runtime {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSourceName = "kernel.cpp";
constexpr const char* kObjectName = "kernel.so";
constexpr const char* kWideTarget = "x86_64-v3-linux";

// In the order of the command line. Contraction is off because where a
// multiply and an add fuse would change bits; the rest keeps paths, times and
// ids out of the result.
constexpr std::array kFlags{
    "-std=c++20",
    "-O2",
    "-fPIC",
    "-shared",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fvisibility=hidden",
    "-frandom-seed=logpjit",
    "-w",
    "-Wl,--build-id=none,--as-needed,-s",
};
constexpr std::array kWideFlags{"-mavx2", "-mfma"};

constexpr std::array kUsualCompilers{"c++", "g++", "clang++"};
// The programs behind a driver that do the compiling, in GCC and in LLVM.
constexpr std::array kCompilerPrograms{"cc1plus", "clang"};

std::string_view first_line(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

std::vector<std::string> split(std::string_view text) {
  std::error_code ignored;
  if (fs::exists(text, ignored)) return {std::string(text)};
  std::vector<std::string> words;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) return words;
    const std::size_t end = std::min(text.find(' '), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::string digest(const fs::path& file) {
  const std::vector<std::byte> bytes = read_file(file);
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string describe_failure(const std::vector<std::string>& command,
                             const std::string& identity,
                             const generator::Source& source,
                             const ProcessResult& result) {
  return fmt::format(
      "{}\n{}\n{}\n{}", identity, fmt::join(command, " "), result.output,
      quote_error_lines(source.text, result.output, kSourceName));
}

[[noreturn]] void throw_failure(const std::vector<std::string>& command,
                                const std::string& identity,
                                const generator::Source& source,
                                const ProcessResult& result) {
  throw Error(
      ErrorCode::kCompileFailed,
      fmt::format("{} (exit code {}) could not compile {}: {}; the log has "
                  "the source lines",
                  command.front(), result.exit_code, source.kernel,
                  first_error(result.output)),
      describe_failure(command, identity, source, result));
}

cache::Image read_image(const fs::path& directory) {
  cache::Image image;
  image.kind = cache::ImageKind::kSharedObject;
  image.entry = "logpjit_kernel";
  image.bytes = read_file(directory / kObjectName);
  return image;
}

}  // namespace

HostCompiler::HostCompiler(HostCompilerOptions options)
    : options_(std::move(options)) {}

std::string HostCompiler::identity() const { return toolchain().identity; }

std::string HostCompiler::options() const {
  return fmt::format("{}", fmt::join(kFlags, " "));
}

const HostCompiler::Toolchain& HostCompiler::toolchain() const {
  if (const Toolchain* known = known_toolchain()) return *known;
  // Without a lock: a fork meanwhile would leave it locked in the child.
  Toolchain found = find_toolchain();
  const CompileGate gate;
  const std::lock_guard lock(mutex_);
  if (!toolchain_) toolchain_ = std::move(found);
  return *toolchain_;
}

const HostCompiler::Toolchain* HostCompiler::known_toolchain() const {
  const CompileGate gate;
  const std::lock_guard lock(mutex_);
  return toolchain_ ? &*toolchain_ : nullptr;
}

HostCompiler::Toolchain HostCompiler::find_toolchain() const {
  std::vector<std::string> candidates(kUsualCompilers.begin(),
                                      kUsualCompilers.end());
  if (!options_.compiler.empty()) candidates = {options_.compiler};
  for (const std::string& candidate : candidates) {
    if (auto found = probe(candidate)) return *std::move(found);
  }
  throw Error(ErrorCode::kUnavailable,
              fmt::format("no C++ compiler for the CPU device: tried {}; "
                          "install one, or name it by the host_compiler option "
                          "or LOGPJIT_HOST_COMPILER",
                          fmt::join(candidates, ", ")));
}

std::optional<HostCompiler::Toolchain> HostCompiler::probe(
    const std::string& compiler) const {
  Toolchain tools;
  tools.command = split(compiler);
  if (tools.command.empty()) return std::nullopt;
  const auto version = ask(tools.command, "--version");
  const auto machine = ask(tools.command, "-dumpmachine");
  if (!version || !machine) return std::nullopt;
  tools.machine = *machine;
  tools.identity = fmt::format("{}; {}", *version, *machine);
  for (const char* program : kCompilerPrograms) {
    const auto file =
        ask(tools.command, fmt::format("-print-prog-name={}", program));
    std::error_code ignored;
    if (!file || !fs::path(*file).is_absolute() ||
        !fs::is_regular_file(*file, ignored)) {
      continue;
    }
    tools.identity += fmt::format("; {}", digest(*file));
    break;
  }
  return tools;
}

std::optional<std::string> HostCompiler::ask(
    const std::vector<std::string>& command,
    const std::string& question) const {
  ProcessRequest request;
  request.command = command;
  request.command.push_back(question);
  request.environment = {"LC_ALL=C"};
  request.timeout_s = options_.timeout_s;
  const ProcessResult result = run_process(request);
  if (result.timed_out) {
    throw Error(ErrorCode::kTimeout,
                fmt::format("{} did not answer {} within {} s", command.front(),
                            question, options_.timeout_s));
  }
  if (!result.found || result.exit_code != 0) return std::nullopt;
  return std::string(first_line(result.output));
}

std::vector<std::string> HostCompiler::command_for(
    const Toolchain& tools, const std::string& target) const {
  const std::string machine = tools.machine.substr(0, tools.machine.find('-'));
  std::vector<std::string> command = tools.command;
  command.insert(command.end(), kFlags.begin(), kFlags.end());
  if (target == kWideTarget && machine == "x86_64") {
    command.insert(command.end(), kWideFlags.begin(), kWideFlags.end());
  } else if (target != fmt::format("{}-linux", machine)) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("the host compiler makes code for {}, not for {}",
                            tools.machine, target));
  }
  command.insert(command.end(), {"-x", "c++", kSourceName, "-o", kObjectName});
  return command;
}

cache::Image HostCompiler::compile(const generator::Source& source,
                                   const std::string& target) {
  if (source.dialect != dialect()) {
    throw Error(ErrorCode::kInternal,
                fmt::format("the CUDA source of {} was given to the host "
                            "compiler",
                            source.kernel));
  }
  const Toolchain& tools = toolchain();
  const auto begin = std::chrono::steady_clock::now();
  const TemporaryDirectory directory;
  write_file(directory.path() / kSourceName,
             std::as_bytes(std::span(source.text)));
  ProcessRequest request;
  request.command = command_for(tools, target);
  request.directory = directory.path();
  request.environment = {"LC_ALL=C", "TMPDIR=" + directory.path().string()};
  request.timeout_s = seconds_left(options_.timeout_s);
  const ProcessResult result = run_process(request);
  if (result.timed_out) {
    throw Error(
        ErrorCode::kTimeout,
        fmt::format("{} did not finish {} within {:.3g} s and was stopped; "
                    "raise compile_timeout_s",
                    tools.command.front(), source.kernel, request.timeout_s),
        result.output);
  }
  std::error_code ignored;
  if (result.exit_code != 0 ||
      !fs::exists(directory.path() / kObjectName, ignored)) {
    throw_failure(request.command, tools.identity, source, result);
  }
  cache::Image image = read_image(directory.path());
  image.compile_ms = std::chrono::duration<double, std::milli>(
                         std::chrono::steady_clock::now() - begin)
                         .count();
  return image;
}

}  // namespace logpjit::runtime
