// Order, repeats and digests of the include closure.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generator/content.hpp"
#include "generator/manifest.hpp"
#include "tests/generator/rule_case.hpp"
#include "tests/generator/scan_process.hpp"

namespace logpjit::generator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string including(const std::vector<std::string>& names,
                      const std::string& rest) {
  std::string text = "#pragma once\n";
  for (const std::string& name : names) {
    text += fmt::format("#include \"common/{}.cuh\"\n", name);
  }
  return text + rest;
}

TemplateManifest scan_one(const TemplatesFolder& folder) {
  const ProcessResult result = folder.scan();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return parse_manifest(result.out).templates.at(0);
}

std::vector<std::string> paths(const TemplateManifest& manifest) {
  std::vector<std::string> paths;
  for (const ClosureFile& file : manifest.closure) paths.push_back(file.path);
  return paths;
}

TEST(Closure, ListsIncludesBeforeIncludersOnceEach) {
  const TemplatesFolder folder;
  folder.write("common/a.cuh", including({"c", "b"}, ""));
  folder.write("common/b.cuh", including({"c"}, ""));
  folder.write("common/c.cuh", including({}, ""));
  folder.write("common/unused.cuh", "");
  folder.write("t.cuh", including({"a", "b"}, kBase));
  EXPECT_THAT(
      paths(scan_one(folder)),
      ElementsAre("common/c.cuh", "common/b.cuh", "common/a.cuh", "t.cuh"));
}

TEST(Closure, FollowsIncludesInDeeperFoldersAndInactiveBranches) {
  const TemplatesFolder folder;
  folder.write("common/deep/a.cuh", "#pragma once\n");
  folder.write("common/b.cuh", "#pragma once\n");
  folder.write("t.cuh", "#if 0\n  #  include \"common/deep/a.cuh\"\n#endif\n" +
                            including({"b"}, kBase));
  EXPECT_THAT(paths(scan_one(folder)),
              ElementsAre("common/deep/a.cuh", "common/b.cuh", "t.cuh"));
}

TEST(Closure, DigestsAreOfTheBytes) {
  const TemplatesFolder folder;
  folder.write("common/a.cuh", "// one\n");
  folder.write("common/b.cuh", "// two\n");
  folder.write("t.cuh", including({"a", "b"}, kBase));
  const TemplateManifest before = scan_one(folder);
  EXPECT_EQ(before.closure[0].digest, content_digest("// one\n"));

  folder.write("common/a.cuh", "// ONE\n");
  const TemplateManifest after = scan_one(folder);
  EXPECT_NE(after.closure[0].digest, before.closure[0].digest);
  EXPECT_EQ(after.closure[1], before.closure[1]);
  EXPECT_EQ(after.closure[2], before.closure[2]);
  EXPECT_EQ(after.kernels, before.kernels);
}

TEST(Closure, RefusesACycle) {
  const TemplatesFolder folder;
  folder.write("common/a.cuh", including({"b"}, ""));
  folder.write("common/b.cuh", including({"a"}, ""));
  folder.write("t.cuh", including({"a"}, kBase));
  const ProcessResult result = folder.scan();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err,
            fmt::format("{}/common/b.cuh:2:1: error: 'common/a.cuh' includes "
                        "itself by way of this line: move what both need into "
                        "a file of its own\n",
                        folder.path().string()));
}

TEST(Closure, RefusesToIncludeATemplate) {
  const TemplatesFolder folder;
  folder.write("common/a.cuh", "#include \"t.cuh\"\n");
  folder.write("t.cuh", including({"a"}, kBase));
  EXPECT_THAT(folder.scan().err, HasSubstr("common/a.cuh:1:1: error: templates "
                                           "include \"common/...\" files"));
}

TEST(Closure, RefusesAFileThatHidesACommonOne) {
  const TemplatesFolder folder;
  folder.write("common/a.cuh", "");
  folder.write("elsewhere/common/a.cuh", "");
  folder.write("elsewhere/t.cuh", including({"a"}, kBase));
  const ProcessResult result =
      folder.scan(quoted(folder.path() / "elsewhere/t.cuh"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              HasSubstr("t.cuh:2:1: error: 'common/a.cuh' beside this file "
                        "hides the one in"));
}

TEST(Closure, RefusesAKernelInACommonFile) {
  const TemplatesFolder folder;
  folder.write("common/a.cuh", kBase);
  folder.write("t.cuh", including({"a"}, ""));
  EXPECT_THAT(folder.scan().err,
              HasSubstr("common/a.cuh:6:27: error: kernel 'sum' stands in an "
                        "included file: move it into a template file"));
}

TEST(Closure, RefusesACommonFileThatLeansOnItsIncluder) {
  const TemplatesFolder folder;
  folder.write("common/a.cuh", "#pragma once\ninline int a() { return 1; }\n");
  folder.write("common/b.cuh",
               "#pragma once\ninline int b() { return a(); }\n");
  folder.write("t.cuh", including({"a", "b"}, kBase));
  EXPECT_EQ(folder.scan().err,
            fmt::format("{}/common/b.cuh:2:25: error: use of undeclared "
                        "identifier 'a'\n",
                        folder.path().string()));
}

TEST(Closure, ReportsACommonFilesFaultOnceForAllTemplates) {
  const TemplatesFolder folder;
  folder.write("common/a.cuh", "inline void f() { __trap(); }\n");
  folder.write("t.cuh", including({"a"}, kBase));
  folder.write("u.cuh",
               including({"a"}, replace_once(kBase, "sum(", "sum_too(")));
  EXPECT_EQ(folder.scan().err,
            fmt::format("{}/common/a.cuh:1:19: error: '__trap' belongs to one "
                        "compiler: use what the prelude offers instead\n",
                        folder.path().string()));
}

TEST(ContentDigest, IsXxh3Of128Bits) {
  // The algorithm's published value for no bytes at all.
  EXPECT_EQ(content_digest(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_NE(content_digest(std::string(1, '\0')), content_digest(""));
}

}  // namespace
}  // namespace logpjit::generator
