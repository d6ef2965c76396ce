// logpjit scan: the other program's answer, passed on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace logpjit::cli {
namespace {

using ::testing::HasSubstr;

const char* const kTemplate =
    LOGPJIT_SOURCE_DIR "/templates/row_statistics.cuh";

/// False on a machine that has no libclang.
bool have_scan() {
  return run_logpjit(shared_cache(), {"scan", kTemplate})
             .err.find("neither beside") == std::string::npos;
}

TEST(Scan, PrintsTheManifest) {
  if (!have_scan()) GTEST_SKIP() << "logpjit-scan was not built";
  const auto result = run_logpjit(shared_cache(), {"scan", kTemplate});
  ASSERT_EQ(result.code, 0) << result.err;
  const auto manifest = nlohmann::json::parse(result.out);
  EXPECT_EQ(manifest["templates"][0]["kernels"][0]["name"], "row_statistics");
}

TEST(Scan, ATemplateOfTheUsersOwn) {
  if (!have_scan()) GTEST_SKIP() << "logpjit-scan was not built";
  const testing::TemporaryDirectory folder;
  const auto file = folder.path() / "mine.cuh";
  std::ofstream(file) << "#pragma once\n#include <cuda.h>\n";
  const auto result = run_logpjit(shared_cache(), {"scan", file.string()});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("mine.cuh:2"));
}

TEST(Scan, AFileThatIsNotThere) {
  const auto result = run_logpjit(shared_cache(), {"scan", "/none.cuh"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("/none.cuh: cannot be read"));
}

}  // namespace
}  // namespace logpjit::cli
