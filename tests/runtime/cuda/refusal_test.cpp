// What a driver may refuse, on one that pretends: an image is compiled once
// more, everything else is said.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "tests/runtime/cuda/pretended_gpu.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::runtime::cuda {
namespace {

using logpjit::testing::FakeCompiler;
using logpjit::testing::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Refusal : public ::testing::Test {
 protected:
  void SetUp() override { fake().forget(); }
  void TearDown() override { fake().forget(); }

  std::filesystem::path cache() { return home_.path() / "cache"; }

  /// Puts an intact entry with these bytes where the kernel's own would be.
  void plant(const std::string& bytes) {
    Process process(cache());
    Engine& engine = process.engine();
    const auto choice = default_choices(spec_of(), engine.device().info());
    const auto key =
        engine.key(spec_of(), choice.back().config, engine.device().target());
    engine.images().find_or_compile(key, [&] {
      cache::Image image;
      image.kind = cache::ImageKind::kCubin;
      image.entry = "kernel";
      const auto all = std::as_bytes(std::span(bytes));
      image.bytes.assign(all.begin(), all.end());
      return image;
    });
  }

  TemporaryDirectory home_;
};

class RefusedImage : public Refusal,
                     public ::testing::WithParamInterface<const char*> {};

TEST_P(RefusedImage, IsCompiledOnceMoreAndReplaced) {
  plant(GetParam());
  Process process(cache());
  process.launch();
  EXPECT_EQ(process.compiler().compiles(), 1);
  EXPECT_EQ(process.rejected(), 1u);
  EXPECT_THAT(process.lines, Contains(HasSubstr("refused")));
  ASSERT_THAT(fake().launches, SizeIs(1));
  EXPECT_THAT(fake().launches[0].image, HasSubstr("sm_90a\n"));
  Process next(cache());
  next.launch();
  EXPECT_EQ(next.compiler().compiles(), 0);
  EXPECT_EQ(next.rejected(), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, RefusedImage,
    ::testing::Values("\x7f"
                      "ELF and then nothing of use",
                      "random bytes 0123456789", "sm_80 for another GPU",
                      "FAKE:209 no binary", "FAKE:218 damaged PTX",
                      "FAKE:222 PTX of the future", "FAKE:300 no source",
                      "FAKE:500 lacks the kernel", "FAKE:999 unknown"),
    [](const auto& each) { return fmt::format("n{}", each.index); });

TEST_F(Refusal, DamageNeverReachesTheDriver) {
  Process(cache()).launch();
  for (const auto& file : std::filesystem::directory_iterator(cache())) {
    if (file.path().extension() != ".lpj") continue;
    std::fstream stream(file.path(),
                        std::ios::binary | std::ios::in | std::ios::out);
    stream.seekp(static_cast<std::streamoff>(file.file_size() / 2));
    stream.put('\x7f');
  }
  fake().loads.clear();
  Process process(cache());
  process.launch();
  EXPECT_EQ(process.compiler().compiles(), 1);
  EXPECT_EQ(process.rejected(), 0u) << "the cache notices, not the driver";
  EXPECT_THAT(fake().loads, SizeIs(1));
}

TEST_F(Refusal, TheFreshImageRefusedTooIsAClearError) {
  plant("random bytes 0123456789");
  Process process(cache());
  process.compiler().on_compile = [](const auto&, const auto&) {
    fake().answers["cuLibraryGetKernel"] = 218;
  };
  EXPECT_THAT(failure_of([&] { process.launch(); }),
              AllOf(HasSubstr("driver: "), HasSubstr("cuLibraryGetKernel"),
                    HasSubstr("218")));
  EXPECT_EQ(process.compiler().compiles(), 1) << "once more, not for ever";
  EXPECT_THAT(fake().launches, IsEmpty());
}

TEST_F(Refusal, PtxThatIsTooNewSaysWhatIsTooOld) {
  fake().answers["cuLibraryGetKernel"] = 222;
  Process process(cache());
  EXPECT_THAT(failure_of([&] { process.launch(); }),
              AllOf(HasSubstr("222"), HasSubstr("update the driver")));
}

TEST_F(Refusal, WhatIsNoFaultOfTheImageCostsNoCompile) {
  // Out of memory, a broken context, a capture that forbids it.
  for (const int code : {2, 201, 214, 700, 719, 900}) {
    Process(cache()).launch();
    fake().answers["cuKernelGetFunction"] = code;
    Process process(cache());
    EXPECT_THAT(failure_of([&] { process.launch(); }),
                AllOf(HasSubstr("driver: "), HasSubstr("cuKernelGetFunction"),
                      HasSubstr(fmt::format("{}", code))));
    EXPECT_EQ(process.compiler().compiles(), 0) << code;
    EXPECT_EQ(process.rejected(), 0u) << code;
    process.launch();
    EXPECT_EQ(process.compiler().compiles(), 0) << "the entry stayed good";
  }
}

TEST_F(Refusal, ARefusalWhereCompilingIsOffListsTheKey) {
  plant("random bytes 0123456789");
  Options options;
  options.cache_directory = cache();
  options.never_compile = true;
  Engine engine(options, std::make_unique<CudaDevice>(driver(), 0),
                std::make_unique<FakeCompiler>());
  EXPECT_THAT(failure_of([&] { engine.program(spec_of(), nullptr); }),
              AllOf(HasSubstr("not_cached: "), HasSubstr("spec: ")));
}

TEST_F(Refusal, UnlikeGpusShareACacheWithoutSharingImages) {
  fake().devices = {90, 120};
  Process(cache(), 0).launch();
  Process other(cache(), 1);
  other.launch();
  EXPECT_EQ(other.compiler().compiles(), 1);
  EXPECT_EQ(other.rejected(), 0u);
  EXPECT_THAT(fake().launches.back().image, HasSubstr("sm_120a"));
  Process same_again(cache(), 1);
  same_again.launch();
  EXPECT_EQ(same_again.compiler().compiles(), 0);
}

}  // namespace
}  // namespace logpjit::runtime::cuda
