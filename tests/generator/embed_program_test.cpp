// logpjit-embed refuses what would not fit together.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generator/content.hpp"
#include "generator/manifest.hpp"
#include "tests/generator/scan_process.hpp"

namespace logpjit::generator {
namespace {

using testing::HasSubstr;

/// Embeds `folder` under a manifest whose only closure file is common/a.cuh.
ProcessResult embed(const TemplatesFolder& folder, const std::string& digest) {
  const Manifest manifest{.templates = {{.file = "t.cuh",
                                         .closure = {{"common/a.cuh", digest}},
                                         .kernels = {}}}};
  folder.write("manifest.json", to_json(manifest));
  return run_process(fmt::format(
      "'{0}' --manifest '{1}/manifest.json' --templates-dir '{1}' -o "
      "'{1}/embedded.cpp'",
      LOGPJIT_EMBED_PROGRAM, folder.path().string()));
}

TEST(EmbedProgram, GivesTheSameTextTwice) {
  const TemplatesFolder folder;
  folder.write("common/a.cuh", "// a\n");
  const ProcessResult first = embed(folder, content_digest("// a\n"));
  EXPECT_EQ(first.exit_code, 0) << first.err;
  const std::string text = read_content(folder.path() / "embedded.cpp");
  EXPECT_EQ(embed(folder, content_digest("// a\n")).exit_code, 0);
  EXPECT_EQ(read_content(folder.path() / "embedded.cpp"), text);
  EXPECT_EQ(text.find(folder.path().string()), std::string::npos);
}

TEST(EmbedProgram, RefusesAManifestOfOtherFiles) {
  const TemplatesFolder folder;
  folder.write("common/a.cuh", "// changed\n");
  const ProcessResult result = embed(folder, content_digest("// a\n"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err,
            "logpjit-embed: 'common/a.cuh' is not what the manifest of 't.cuh' "
            "was made from: build the target update-manifest where libclang is "
            "installed\n");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "embedded.cpp"));
}

TEST(EmbedProgram, RefusesAMissingFile) {
  const TemplatesFolder folder;
  folder.write("common/b.cuh", "");
  const ProcessResult result = embed(folder, content_digest(""));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("'common/a.cuh'"));
}

TEST(EmbedProgram, RefusesADamagedManifest) {
  const TemplatesFolder folder;
  folder.write("common/a.cuh", "");
  EXPECT_THAT(embed(folder, "short").err, HasSubstr("32 hex digits"));
}

TEST(EmbedProgram, TellsWrongUsageFromFailure) {
  EXPECT_EQ(run_process(fmt::format("'{}'", LOGPJIT_EMBED_PROGRAM)).exit_code,
            2);
}

}  // namespace
}  // namespace logpjit::generator
