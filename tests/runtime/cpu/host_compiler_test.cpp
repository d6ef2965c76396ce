// The real host compiler, and scripts that stand in for bad ones.
#include "runtime/cpu/host_compiler.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "runtime/cpu/process.hpp"
#include "runtime/cpu/temporary_directory.hpp"
#include "tests/runtime/cpu/host_kernels.hpp"

namespace logpjit::runtime::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

/// A program of the given text in a directory of its own.
class Script {
 public:
  explicit Script(const std::string& text)
      : path_((directory_.path() / "compiler").string()) {
    const std::string program = "#!/bin/sh\n" + text;
    write_file(path_, std::as_bytes(std::span(program)));
    chmod(path_.c_str(), 0700);
  }
  const std::string& path() const { return path_; }

 private:
  TemporaryDirectory directory_;
  std::string path_;
};

// Answers the questions as a compiler would.
constexpr const char* kAnswers = R"(
case "$1" in
--version) echo "script 1.0"; echo "second line"; exit 0;;
-dumpmachine) echo x86_64-linux-gnu; exit 0;;
-print-prog-name=*) echo "${1#*=}"; exit 0;;
esac
)";

Error error_of(HostCompiler& compiler, const generator::Source& source,
               const std::string& target = host_target()) {
  try {
    compiler.compile(source, target);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "the compile did not fail";
  return Error(ErrorCode::kInternal, "");
}

TEST(HostCompiler, SaysWhoItIsWithoutPaths) {
  HostCompiler compiler;
  const std::string identity = compiler.identity();
  EXPECT_THAT(identity, AllOf(Not(HasSubstr("/")), Not(HasSubstr("\n"))));
  EXPECT_THAT(identity, MatchesRegex(".+; .+; [0-9a-f]{32}"));
  EXPECT_EQ(identity, compiler.identity());
  EXPECT_EQ(identity, HostCompiler().identity());
  EXPECT_EQ(compiler.dialect(), generator::Dialect::kHost);
  EXPECT_THAT(compiler.options(), HasSubstr("-ffp-contract=off"));
}

TEST(HostCompiler, MakesTheSameBytesEachTime) {
  const auto source = make_source("a.out[0] = exp2_approx(a.in[0]);");
  HostCompiler first;
  HostCompiler second;
  const cache::Image one = first.compile(source, host_target());
  const cache::Image two = second.compile(source, host_target());
  EXPECT_EQ(one.kind, cache::ImageKind::kSharedObject);
  EXPECT_EQ(one.entry, "logpjit_kernel");
  EXPECT_EQ(one.facts, cache::LaunchFacts{});
  EXPECT_GT(one.compile_ms, 0);
  EXPECT_TRUE(one.bytes == two.bytes);
  const std::string text(reinterpret_cast<const char*>(one.bytes.data()),
                         one.bytes.size());
  EXPECT_THAT(text, Not(HasSubstr("logpjit-")));
  EXPECT_THAT(text, Not(HasSubstr(fs::temp_directory_path().string() + "/")));
}

TEST(HostCompiler, CompilesFromManyThreads) {
  std::vector<std::thread> threads;
  std::vector<std::size_t> sizes(4);
  HostCompiler compiler;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    threads.emplace_back([&, i] {
      sizes[i] = compiler.compile(make_source("sync_threads();"), host_target())
                     .bytes.size();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(sizes, ::testing::Each(::testing::Gt(0u)));
}

TEST(HostCompiler, QuotesTheLinesOfAnError) {
  const Error error =
      error_of(shared_compiler(),
               make_source("int before = 1;\nno_such_thing(before);\n"));
  EXPECT_EQ(error.code(), ErrorCode::kCompileFailed);
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("probe"), HasSubstr("no_such_thing")));
  EXPECT_THAT(error.log(), AllOf(HasSubstr("-ffp-contract=off"),
                                 HasSubstr(shared_compiler().identity()),
                                 HasSubstr("kernel.cpp:")));
  EXPECT_TRUE(::testing::internal::RE::PartialMatch(
      error.log(),
      ::testing::internal::RE("> +[0-9]+ \\| no_such_thing\\(before\\);")));
  EXPECT_THAT(error.log(), HasSubstr("| int before = 1;"));
}

TEST(HostCompiler, RefusesWhatItCannotDo) {
  const auto source = make_source("");
  EXPECT_EQ(error_of(shared_compiler(), source, "sm_90a").code(),
            ErrorCode::kUnsupported);
  EXPECT_EQ(error_of(shared_compiler(), source, "").code(),
            ErrorCode::kUnsupported);
  auto cuda = source;
  cuda.dialect = generator::Dialect::kCuda;
  EXPECT_EQ(error_of(shared_compiler(), cuda).code(), ErrorCode::kInternal);
}

TEST(HostCompiler, MissingCompilerIsNamedWithTheOption) {
  for (const char* name :
       {"/no/such/compiler", "no-such-compiler-anywhere", "/dev/null", " "}) {
    HostCompiler compiler({.compiler = name});
    try {
      compiler.identity();
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      EXPECT_THAT(error.message(),
                  AllOf(HasSubstr(name), HasSubstr("host_compiler option")));
    }
  }
}

TEST(HostCompiler, TakesACommandWithArguments) {
  HostCompiler compiler({.compiler = "  env  c++ "});
  EXPECT_EQ(compiler.identity(), HostCompiler({.compiler = "c++"}).identity());
  EXPECT_GT(compiler.compile(make_source(""), host_target()).bytes.size(), 0u);
}

TEST(HostCompiler, ClangAndGccMakeKernelsOfTheSameBits) {
  const auto source = make_source(R"(
    const int t = thread_index();
    float value = exp2_approx(a.in[t]) * 1.1f + a.in[63 - t];
    LOGPJIT_UNROLL
    for (int mask = 1; mask < 32; mask *= 2) {
      value = fma(value, 0.7f, shuffle_xor(value, mask));
    }
    a.out[t] = float_of_half(static_cast<u16>(pack_fp16(value, value))) + value;
  )");
  std::vector<std::vector<float>> outs;
  std::vector<float> in(64);
  for (int t = 0; t < 64; ++t) in[t] = 0.37f * float(t) - 9.0f;
  for (const char* name : {"g++", "clang++"}) {
    HostCompiler compiler({.compiler = name});
    try {
      compiler.identity();
    } catch (const Error& error) {
      GTEST_SKIP() << error.message();
    }
    const auto kernel = shared_device().load(
        compiler.compile(source, shared_device().target()), 0);
    std::vector<float> out(64);
    launch(*kernel, {.block = 64}, {.in = in.data(), .out = out.data()});
    outs.push_back(out);
  }
  EXPECT_EQ(outs[0], outs[1]);
}

TEST(HostCompiler, ATimeOutKillsTheWholeGroup) {
  const TemporaryDirectory directory;
  const std::string pid_file = (directory.path() / "pid").string();
  const Script script(std::string(kAnswers) + "sh -c 'echo $$ > " + pid_file +
                      "; exec sleep 60'\n");
  HostCompiler compiler({.compiler = script.path(), .timeout_s = 0.5});
  const auto begin = std::chrono::steady_clock::now();
  const Error error = error_of(compiler, make_source(""), "x86_64-linux");
  EXPECT_EQ(error.code(), ErrorCode::kTimeout) << error.message();
  EXPECT_THAT(error.message(), AllOf(HasSubstr("probe"), HasSubstr("0.5 s")));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  const int grandchild = std::stoi(read_text(pid_file));
  bool gone = false;
  for (int tries = 0; tries < 100 && !gone; ++tries) {
    gone = kill(grandchild, 0) != 0 ||
           read_text(fmt::format("/proc/{}/stat", grandchild)).find(") Z") !=
               std::string::npos;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_TRUE(gone);
}

TEST(HostCompiler, GivesUpWhenItIsTold) {
  const Script script(std::string(kAnswers) + "exec sleep 60\n");
  HostCompiler compiler({.compiler = script.path()});
  compiler.identity();
  const auto begin = std::chrono::steady_clock::now();
  compiler.give_up_at(begin + std::chrono::milliseconds(300));
  // One that is at work, and one that comes too late.
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(error_of(compiler, make_source(""), "x86_64-linux").code(),
              ErrorCode::kTimeout);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(HostCompiler, ATimeOutHoldsForProgramsThatCloseTheirOutput) {
  const Script script(std::string(kAnswers) +
                      "exec sleep 60 >/dev/null 2>&1\n");
  HostCompiler compiler({.compiler = script.path(), .timeout_s = 0.3});
  EXPECT_EQ(error_of(compiler, make_source(""), "x86_64-linux").code(),
            ErrorCode::kTimeout);
}

TEST(HostCompiler, SuccessWithoutAnObjectIsAFailure) {
  const Script script(std::string(kAnswers) + "echo made nothing; exit 0\n");
  HostCompiler compiler({.compiler = script.path()});
  EXPECT_THAT(compiler.identity(), HasSubstr("script 1.0; x86_64-linux-gnu"));
  const Error error = error_of(compiler, make_source(""), "x86_64-linux");
  EXPECT_EQ(error.code(), ErrorCode::kCompileFailed);
  EXPECT_THAT(error.message(), HasSubstr("made nothing"));
}

TEST(HostCompiler, ACompilerThatCrashes) {
  const Script script(std::string(kAnswers) + "kill -SEGV $$\n");
  HostCompiler compiler({.compiler = script.path()});
  const Error error = error_of(compiler, make_source(""), "x86_64-linux");
  EXPECT_EQ(error.code(), ErrorCode::kCompileFailed);
  EXPECT_THAT(error.message(), HasSubstr("exit code 139"));
}

TEST(HostCompiler, LeavesNothingBehind) {
  const TemporaryDirectory directory;
  const std::string before = fs::temp_directory_path();
  setenv("TMPDIR", directory.path().c_str(), 1);
  HostCompiler().compile(make_source(""), host_target());
  error_of(shared_compiler(), make_source("?"));
  const Script script(std::string(kAnswers) + "sleep 60\n");
  HostCompiler slow({.compiler = script.path(), .timeout_s = 0.3});
  EXPECT_EQ(error_of(slow, make_source(""), "x86_64-linux").code(),
            ErrorCode::kTimeout);
  setenv("TMPDIR", before.c_str(), 1);
  const fs::directory_iterator left(directory.path());
  // The script's own directory is still there.
  EXPECT_EQ(std::distance(begin(left), end(left)), 1);
}

TEST(HostCompiler, AnUnwritableTemporaryDirectoryIsNamed) {
  const std::string before = fs::temp_directory_path();
  setenv("TMPDIR", "/proc", 1);
  const Error error = error_of(shared_compiler(), make_source(""));
  setenv("TMPDIR", before.c_str(), 1);
  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("/proc"), HasSubstr("TMPDIR")));
}

TEST(Process, OutputIsCappedAndHugeOutputDoesNotBlock) {
  const ProcessResult result = run_process(
      {.command = {"sh", "-c", "head -c 5000000 /dev/zero; echo end >&2"},
       .directory = {},
       .environment = {},
       .timeout_s = 30});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.output.size(), std::size_t{1} << 20);
}

TEST(Process, HasNoInputAndTheEnvironmentAskedFor) {
  const ProcessResult result = run_process(
      {.command = {"sh", "-c", "cat; echo \"$LC_ALL,$PROBE\"; pwd; exit 7"},
       .directory = "/",
       .environment = {"LC_ALL=C", "PROBE=a b"},
       .timeout_s = 30});
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(result.output, "C,a b\n/\n");
}

TEST(Process, ABackgroundChildThatHoldsTheOutputIsStopped) {
  const ProcessResult result =
      run_process({.command = {"sh", "-c", "sleep 60 & echo done"},
                   .directory = {},
                   .environment = {},
                   .timeout_s = 0.3});
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.output, "done\n");
}

}  // namespace
}  // namespace logpjit::runtime::testing
