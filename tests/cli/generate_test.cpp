// logpjit generate: whole source, to stdout or to a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/cli/program.hpp"

namespace logpjit::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

ProgramResult generate(const Words& more = {}) {
  Words words{"generate", "--op",    "logp", "--dtype",
              "bf16",     "--vocab", "32000"};
  words.insert(words.end(), more.begin(), more.end());
  return run_logpjit(shared_cache(), words);
}

TEST(Generate, PrintsAWholeSource) {
  const auto result = generate();
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("32000"));
  EXPECT_THAT(result.out, Not(HasSubstr("#include \"")));
  EXPECT_EQ(generate().out, result.out);
}

TEST(Generate, ConfigChangesTheInstantiation) {
  const auto result = generate({"--config", "block=1024"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out, generate().out);
}

TEST(Generate, TheCpuHasItsOwnDialect) {
  const auto result = generate({"--arch", "cpu"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out, generate().out);
}

TEST(Generate, EveryOperationThatFitsOnAnArchitecture) {
  for (const char* op : {"logp_backward", "logp_with_grad", "kl_backward"}) {
    const auto result =
        run_logpjit(shared_cache(), {"generate", "--op", op, "--dtype", "bf16",
                                     "--vocab", "151936", "--arch", "sm_90a"});
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("151936")) << op;
  }
  const auto small = run_logpjit(
      shared_cache(), {"generate", "--op", "logp_with_grad", "--dtype", "bf16",
                       "--vocab", "151936", "--arch", "sm_120a"});
  EXPECT_EQ(small.code, 1);
  EXPECT_THAT(small.err, HasSubstr("does not fit on chip"));
}

TEST(Generate, WritesAFile) {
  const testing::TemporaryDirectory folder;
  const auto file = folder.path() / "kernel.cu";
  const auto result = generate({"-o", file.string()});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  std::ifstream in(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}),
            generate().out);
}

TEST(Generate, AFolderThatIsNotThere) {
  const auto result = generate({"-o", "/nonexistent/kernel.cu"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("/nonexistent/kernel.cu: cannot be "
                                    "written: No such file or directory"));
}

}  // namespace
}  // namespace logpjit::cli
