// Compilers that were updated, replaced, taken away or broken: what is cached
// serves where it may, and what is said names the file.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>

#include "logpjit/error.hpp"
#include "runtime/cuda/nvrtc_compiler.hpp"
#include "runtime/engine.hpp"
#include "tests/support/device/null_device.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::runtime {
namespace {

using cuda::NvrtcCompiler;
using logpjit::testing::NullDevice;
using logpjit::testing::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::HasSubstr;

bool is_loaded(const std::string& file) {
  struct Search {
    const std::string& file;
    bool found = false;
  } search{file};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        wanted.found = wanted.found || wanted.file == info->dlpi_name;
        return 0;
      },
      &search);
  return search.found;
}

template <typename Work>
std::string failure_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return fmt::format("{}: {}\n{}", name(error.code()), error.message(),
                       error.log());
  }
  return "";
}

class OtherNvrtc : public ::testing::Test {
 protected:
  /// A process with this NVRTC file, and how often it compiled.
  std::unique_ptr<Engine> process(const std::string& nvrtc,
                                  bool sealed = false) {
    Options options;
    options.device = "cuda";
    options.nvrtc_library = nvrtc;
    const auto directory = home_.path() / "cache";
    if (sealed) {
      options.read_only_caches = {directory};
    } else {
      options.cache_directory = directory;
    }
    return std::make_unique<Engine>(
        options, std::make_unique<NullDevice>(),
        std::make_unique<NvrtcCompiler>(nvrtc,
                                        std::vector<std::filesystem::path>{}));
  }

  static KernelSpec spec() {
    KernelSpec spec = *parse_op("logp");
    spec.vocab = 1000;
    return spec;
  }

  std::string text_file(const std::string& content) {
    const auto file = home_.path() / "libnvrtc.so.13";
    std::ofstream(file) << content;
    return file;
  }

  TemporaryDirectory home_;
};

TEST_F(OtherNvrtc, AnotherBuildMissesInTheUsersCache) {
  auto before = process(LOGPJIT_NVRTC_A);
  before->prepare(spec());
  EXPECT_EQ(before->counters().compiled, 1u);
  auto same = process(LOGPJIT_NVRTC_A);
  same->prepare(spec());
  EXPECT_EQ(same->counters().disk_hits, 1u);
  auto updated = process(LOGPJIT_NVRTC_B);
  updated->prepare(spec());
  EXPECT_EQ(updated->counters().compiled, 1u);
}

TEST_F(OtherNvrtc, ASealedCacheServesAnyBuildAndNone) {
  process(LOGPJIT_NVRTC_A)->prepare(spec());
  for (const std::string& nvrtc :
       {std::string(LOGPJIT_NVRTC_C), std::string("/nonexistent/libnvrtc.so"),
        text_file("this is no library")}) {
    auto engine = process(nvrtc, /*sealed=*/true);
    EXPECT_EQ(failure_of([&] { engine->prepare(spec()); }), "") << nvrtc;
    EXPECT_EQ(engine->counters().sealed_hits, 1u) << nvrtc;
  }
  EXPECT_FALSE(is_loaded(LOGPJIT_NVRTC_C)) << "a warm start opens no compiler";
}

TEST_F(OtherNvrtc, TwoHundredWarmStartsOpenNoCompiler) {
  const pid_t child = fork();
  if (child == 0) {
    process(LOGPJIT_NVRTC_D)->prepare(spec());
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  for (int i = 0; i < 200; ++i) {
    auto warm = process(LOGPJIT_NVRTC_D);
    warm->prepare(spec());
    EXPECT_EQ(warm->counters().disk_hits, 1u);
  }
  EXPECT_FALSE(is_loaded(LOGPJIT_NVRTC_D));
}

TEST_F(OtherNvrtc, OnesThatAreNoneAreNamedWithTheSetting) {
  const std::string text = text_file("this is no library");
  for (const std::string& nvrtc : {std::string("/nonexistent/libnvrtc.so"),
                                   text, std::string(LOGPJIT_NVRTC_11)}) {
    EXPECT_THAT(failure_of([&] { process(nvrtc)->prepare(spec()); }),
                AllOf(HasSubstr("unavailable: "), HasSubstr(nvrtc),
                      HasSubstr("LOGPJIT_NVRTC")));
  }
  EXPECT_THAT(failure_of([&] { process(LOGPJIT_NVRTC_11)->prepare(spec()); }),
              HasSubstr("11.0"));
}

TEST_F(OtherNvrtc, SuccessWithoutCodeIsAnErrorEachTime) {
  NvrtcCompiler compiler(LOGPJIT_NVRTC_A, {});
  generator::Source source;
  source.text = "// no code\n";
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(failure_of([&] { compiler.compile(source, "sm_90a"); }),
                AllOf(HasSubstr("compile_failed: "), HasSubstr("no code"),
                      HasSubstr("sm_90a")));
  }
}

TEST_F(OtherNvrtc, MissingBuiltinsAreSaidInNvrtcsWords) {
  NvrtcCompiler compiler(LOGPJIT_NVRTC_A, {});
  generator::Source source;
  source.text = "// no builtins\n";
  EXPECT_THAT(failure_of([&] { compiler.compile(source, "sm_90a"); }),
              AllOf(HasSubstr("compile_failed: "),
                    HasSubstr("libnvrtc-builtins.so.13.0"),
                    HasSubstr("LOGPJIT_NVRTC")));
}

TEST_F(OtherNvrtc, ATargetItDoesNotKnowIsNamedWithThoseItDoes) {
  NvrtcCompiler compiler(LOGPJIT_NVRTC_A, {});
  EXPECT_THAT(failure_of([&] { compiler.compile({}, "sm_100a"); }),
              AllOf(HasSubstr("unsupported: "), HasSubstr("sm_100a"),
                    HasSubstr("sm_120")));
}

}  // namespace
}  // namespace logpjit::runtime
