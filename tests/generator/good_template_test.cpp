// A template that uses everything allowed gives the whole manifest.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "generator/content.hpp"
#include "generator/manifest.hpp"
#include "tests/generator/scan_process.hpp"

namespace logpjit::generator {
namespace {

const std::string kData =
    std::string(LOGPJIT_SOURCE_DIR) + "/tests/generator/data/good/";

void copy_good(const TemplatesFolder& folder) {
  for (const char* name :
       {"good.cuh", "common/first.cuh", "common/second.cuh"}) {
    folder.write(name, read_content(kData + name));
  }
}

TEST(GoodTemplate, GivesTheManifestWordForWord) {
  const TemplatesFolder folder;
  copy_good(folder);
  const ProcessResult result = folder.scan();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out, read_content(kData + "manifest.json"));
}

TEST(GoodTemplate, GivesTheSameFromAnotherDirectoryAndByName) {
  const TemplatesFolder folder;
  copy_good(folder);
  const ProcessResult by_name = folder.scan(quoted(folder.path() / "good.cuh"));
  EXPECT_EQ(by_name.out, read_content(kData + "manifest.json"));
  const ProcessResult relative = run_process(
      fmt::format("cd {} && {} --templates-dir ./ ./good.cuh",
                  quoted(folder.path()), quoted(LOGPJIT_SCAN_PROGRAM)));
  EXPECT_EQ(relative.out, by_name.out);
}

TEST(GoodTemplate, HasTheFactsThatArgumentPackingNeeds) {
  const Manifest manifest =
      parse_manifest(read_content(kData + "manifest.json"));
  const KernelManifest* kernel = manifest.find("good_kernel");
  ASSERT_NE(kernel, nullptr);
  std::int64_t end = 0;
  for (const ArgumentField& field : kernel->arguments) {
    EXPECT_GE(field.offset, end) << field.name;
    EXPECT_EQ(field.offset % field.size, 0) << field.name;
    end = field.offset + field.size;
  }
  EXPECT_LE(end, kernel->argument_size);
}

}  // namespace
}  // namespace logpjit::generator
