// One NVRTC program per kernel, from source text to checked image.
#include "runtime/cuda/nvrtc_compiler.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstring>

#include "logpjit/error.hpp"
#include "runtime/compile_gate.hpp"
#include "runtime/compile_log.hpp"

namespace logpjit::runtime::cuda {
namespace {

constexpr const char* kProgramName = "logpjit_kernel.cu";

/// Fixed options. No contraction: templates say fma where they mean it. NVRTC's
/// own disk cache stays off: it opens the driver, and hides cold times.
constexpr std::array kOptions{"--std=c++20",
                              "--fmad=false",
                              "--no-cache",
                              "--device-as-default-execution-space",
                              "--frandom-seed=logpjit",
                              "--ptxas-options=-v"};

/// Leaves out the declarations of textures and of the CUDA runtime, which no
/// template uses: a compile parses less, and the code is the same, hence it is
/// in no key. Since CUDA 12.4.
constexpr const char* kFewDeclarations = "--minimal";
bool knows_few_declarations(const Nvrtc& nvrtc) {
  return nvrtc.major() > 12 || (nvrtc.major() == 12 && nvrtc.minor() >= 4);
}

/// A program that is destroyed with the scope.
class Program {
 public:
  Program(const Nvrtc& nvrtc, const std::string& text) : nvrtc_(nvrtc) {
    check(nvrtc_.create_program(&program_, text.c_str(), kProgramName, 0,
                                nullptr, nullptr),
          "nvrtcCreateProgram");
  }
  ~Program() { nvrtc_.destroy_program(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  NvrtcProgram get() const { return program_; }

  void check(int result, const char* call) const {
    if (result == 0) return;
    throw Error(
        ErrorCode::kCompileFailed,
        fmt::format("{} failed: {}", call, nvrtc_.get_error_string(result)));
  }

  std::string log() const {
    std::size_t size = 0;
    if (nvrtc_.get_program_log_size(program_, &size) != 0) return {};
    std::string text(size, '\0');
    if (nvrtc_.get_program_log(program_, text.data()) != 0) return {};
    text.resize(std::strlen(text.c_str()));
    return text;
  }

 private:
  const Nvrtc& nvrtc_;
  NvrtcProgram program_ = nullptr;
};

/// 90 of "sm_90a" and "compute_90".
std::optional<int> arch_number(std::string_view target) {
  const std::size_t digit = target.find_first_of("0123456789");
  if (digit == std::string_view::npos) return std::nullopt;
  int number = 0;
  std::from_chars(target.data() + digit, target.data() + target.size(), number);
  return number;
}

void check_target(const Nvrtc& nvrtc, const std::string& target) {
  const std::optional<int> arch = arch_number(target);
  const bool shaped =
      target.starts_with("sm_") || target.starts_with("compute_");
  const std::vector<int>& known = nvrtc.archs();
  if (shaped && arch && std::ranges::find(known, *arch) != known.end()) return;
  std::string list;
  for (const int number : known) list += fmt::format(" sm_{}", number);
  throw Error(ErrorCode::kUnsupported,
              fmt::format("NVRTC {}.{} makes no code for '{}'; it knows:{}",
                          nvrtc.major(), nvrtc.minor(), target, list));
}

/// NVRTC keeps half of itself in a second library that it looks for by name.
bool lacks_builtins(const std::string& log) {
  return log.find("libnvrtc-builtins") != std::string::npos ||
         log.find("BUILTIN_OPERATION_FAILURE") != std::string::npos;
}

[[noreturn]] void fail(const Nvrtc& nvrtc, const generator::Source& source,
                       const std::string& target, const std::string& log) {
  if (lacks_builtins(log)) {
    throw Error(
        ErrorCode::kCompileFailed,
        fmt::format("{} does not find its libnvrtc-builtins, which belongs "
                    "beside it: add its folder to LD_LIBRARY_PATH, or name "
                    "another NVRTC with LOGPJIT_NVRTC",
                    nvrtc.library().path().string()),
        log);
  }
  const std::string quoted = quote_error_lines(source.text, log, kProgramName);
  throw Error(
      ErrorCode::kCompileFailed,
      fmt::format("NVRTC {}.{} cannot compile {} for {}: {}", nvrtc.major(),
                  nvrtc.minor(), source.kernel, target, first_error(log)),
      fmt::format("{}\n{}\n--gpu-architecture={} {}\n", log, quoted, target,
                  fmt::join(kOptions, " ")));
}

void compile_program(const Nvrtc& nvrtc, const Program& program,
                     const generator::Source& source,
                     const std::string& target) {
  program.check(
      nvrtc.add_name_expression(program.get(), source.name_expression.c_str()),
      "nvrtcAddNameExpression");
  const std::string architecture = "--gpu-architecture=" + target;
  std::vector<const char*> options{architecture.c_str()};
  options.insert(options.end(), kOptions.begin(), kOptions.end());
  if (knows_few_declarations(nvrtc)) options.push_back(kFewDeclarations);
  const int result = nvrtc.compile_program(
      program.get(), static_cast<int>(options.size()), options.data());
  if (result != 0) {
    const std::string log = program.log();
    fail(nvrtc, source, target,
         log.empty() ? std::string(nvrtc.get_error_string(result)) : log);
  }
}

std::vector<std::byte> read_code(const Nvrtc& nvrtc, const Program& program,
                                 bool ptx, const std::string& target) {
  std::size_t size = 0;
  program.check(ptx ? nvrtc.get_ptx_size(program.get(), &size)
                    : nvrtc.get_cubin_size(program.get(), &size),
                ptx ? "nvrtcGetPTXSize" : "nvrtcGetCUBINSize");
  if (size == 0) {
    throw Error(ErrorCode::kCompileFailed,
                fmt::format("NVRTC made no code for '{}' and reported success",
                            target));
  }
  std::vector<std::byte> bytes(size);
  char* to = reinterpret_cast<char*>(bytes.data());
  program.check(ptx ? nvrtc.get_ptx(program.get(), to)
                    : nvrtc.get_cubin(program.get(), to),
                ptx ? "nvrtcGetPTX" : "nvrtcGetCUBIN");
  return bytes;
}

/// The integer right before `word` in `log`; -1 when absent.
std::int32_t number_before(std::string_view log, std::string_view word) {
  const std::size_t at = log.find(word);
  if (at == std::string_view::npos || at == 0) return -1;
  std::size_t begin = at;
  while (begin > 0 && log[begin - 1] >= '0' && log[begin - 1] <= '9') --begin;
  std::int32_t number = -1;
  std::from_chars(log.data() + begin, log.data() + at, number);
  return number;
}

}  // namespace

cache::LaunchFacts parse_ptxas_report(std::string_view log) {
  cache::LaunchFacts facts;
  facts.registers = number_before(log, " registers");
  facts.stack_bytes = number_before(log, " bytes stack frame");
  facts.parameter_bytes = number_before(log, " bytes cmem[0]");
  const std::int32_t stores = number_before(log, " bytes spill stores");
  const std::int32_t loads = number_before(log, " bytes spill loads");
  if (stores >= 0 && loads >= 0) facts.spill_bytes = stores + loads;
  const std::int32_t shared = number_before(log, " bytes smem");
  if (facts.registers >= 0) facts.static_shared_bytes = std::max(shared, 0);
  return facts;
}

NvrtcCompiler::NvrtcCompiler(const std::string& explicit_file,
                             const std::vector<std::filesystem::path>& folders)
    : search_(nvrtc_search(explicit_file, folders)) {}

const Nvrtc& NvrtcCompiler::nvrtc() const {
  const CompileGate gate;
  const std::lock_guard lock(mutex_);
  if (!nvrtc_) {
    nvrtc_ = std::make_unique<const Nvrtc>(search_);
    CompileGate::wait_first_at_exit();
  }
  return *nvrtc_;
}

std::string NvrtcCompiler::identity() const {
  const CompileGate gate;
  {
    const std::lock_guard lock(mutex_);
    if (identity_) return *identity_;
  }
  std::string id;
  if (const auto loaded = DynamicLibrary::find_loaded(search_)) {
    id = loaded->build_id();
  } else if (const auto file = find_file(search_)) {
    id = file_build_id(*file);
  }
  if (id.empty()) {
    const Nvrtc& opened = nvrtc();
    id = opened.library().build_id();
    if (id.empty()) {
      id = fmt::format("none, version {}.{}", opened.major(), opened.minor());
    }
  }
  const std::lock_guard lock(mutex_);
  identity_ = "nvrtc build-id " + id;
  return *identity_;
}

std::string NvrtcCompiler::options() const {
  return fmt::format("{}", fmt::join(kOptions, " "));
}

std::string NvrtcCompiler::describe() const {
  const Nvrtc& opened = nvrtc();
  return fmt::format("NVRTC {}.{} ({})", opened.major(), opened.minor(),
                     opened.library().path().string());
}

cache::Image NvrtcCompiler::compile(const generator::Source& source,
                                    const std::string& target) {
  const CompileGate gate;
  const Nvrtc& opened = nvrtc();
  check_target(opened, target);
  const auto begin = std::chrono::steady_clock::now();
  const Program program(opened, source.text);
  compile_program(opened, program, source, target);

  const bool ptx = target.starts_with("compute_");
  cache::Image image;
  image.kind = ptx ? cache::ImageKind::kPtx : cache::ImageKind::kCubin;
  image.bytes = read_code(opened, program, ptx, target);
  const char* lowered = nullptr;
  program.check(opened.get_lowered_name(
                    program.get(), source.name_expression.c_str(), &lowered),
                "nvrtcGetLoweredName");
  image.entry = lowered;
  image.facts = parse_ptxas_report(program.log());
  image.compile_ms = std::chrono::duration<double, std::milli>(
                         std::chrono::steady_clock::now() - begin)
                         .count();
  // NVRTC makes globals of its own in its first compile.
  static std::once_flag first;
  std::call_once(first, CompileGate::wait_first_at_exit);
  return image;
}

}  // namespace logpjit::runtime::cuda
