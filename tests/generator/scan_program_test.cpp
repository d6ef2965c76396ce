// logpjit-scan as a program: options, exit codes, several files and faults.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generator/content.hpp"
#include "generator/manifest.hpp"
#include "tests/generator/rule_case.hpp"
#include "tests/generator/scan_process.hpp"

namespace logpjit::generator {
namespace {

using testing::HasSubstr;

TEST(ScanProgram, TakesEveryTemplateInOrderOfName) {
  const TemplatesFolder folder;
  folder.write("b.cuh", kBase);
  folder.write("a.cuh", replace_once(kBase, "sum(", "first("));
  folder.write("notes.txt", "no template");
  folder.write("deeper/c.cuh", "not looked at");
  const Manifest manifest = parse_manifest(folder.scan().out);
  ASSERT_EQ(manifest.templates.size(), 2u);
  EXPECT_EQ(manifest.templates[0].file, "a.cuh");
  EXPECT_EQ(manifest.templates[1].file, "b.cuh");
}

TEST(ScanProgram, GivesAnEmptyManifestForNoTemplates) {
  const TemplatesFolder folder;
  const ProcessResult result = folder.scan();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(parse_manifest(result.out), Manifest{});
}

TEST(ScanProgram, NamesATemplateOutsideByItsFileNameOnly) {
  const TemplatesFolder folder;
  const TemplatesFolder mine;
  folder.write("common/a.cuh", "#pragma once\n");
  mine.write("mine here.cuh", "#include \"common/a.cuh\"\n" + kBase);
  const ProcessResult result =
      folder.scan(quoted(mine.path() / "mine here.cuh"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Manifest manifest = parse_manifest(result.out);
  EXPECT_EQ(manifest.templates.at(0).file, "mine here.cuh");
  EXPECT_EQ(manifest.find("sum")->file, "mine here.cuh");
  EXPECT_EQ(result.out.find(mine.path().string()), std::string::npos);
}

TEST(ScanProgram, WritesToAFileWhenAsked) {
  const TemplatesFolder folder;
  folder.write("t.cuh", kBase);
  const auto output = folder.path() / "out.json";
  const ProcessResult result = folder.scan("-o " + quoted(output));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(parse_manifest(read_content(output)).find("sum"), nullptr);
}

TEST(ScanProgram, LeavesTheOutputFileAloneOnAFault) {
  const TemplatesFolder folder;
  folder.write("t.cuh", "int x = ;");
  const auto output = folder.path() / "out.json";
  EXPECT_EQ(folder.scan("-o " + quoted(output)).exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(output));
}

TEST(ScanProgram, CollectsAllFaultsInFileOrder) {
  const TemplatesFolder folder;
  folder.write("t.cuh", R"(#include <vector>
#include "common/none.cuh"
struct A { float** out; };
template <int kBlock>
LOGPJIT_KERNEL(kBlock, 1) sum(const A args) {
  __syncthreads();
  asm("nop");
  return missing;
}
)");
  folder.write("u.cuh", "");
  const std::string dir = folder.path().string();
  const ProcessResult result = folder.scan();
  EXPECT_EQ(result.exit_code, 1);
  std::vector<std::string> places;
  for (std::string_view rest = result.err; !rest.empty();) {
    const std::string line(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(line.size() + 1);
    places.push_back(
        line.substr(dir.size() + 1, line.find(": error") - dir.size() - 1));
  }
  EXPECT_THAT(places,
              testing::ElementsAre("t.cuh:1:1", "t.cuh:2:1", "t.cuh:3:20",
                                   "t.cuh:4:15", "t.cuh:5:27", "t.cuh:6:3",
                                   "t.cuh:7:3", "t.cuh:8:10", "u.cuh:1:1"));
}

TEST(ScanProgram, FindsTheSameKernelInTwoFiles) {
  const TemplatesFolder folder;
  folder.write("t.cuh", kBase);
  folder.write("u.cuh", "\n" + kBase);
  const std::string dir = folder.path().string();
  EXPECT_EQ(folder.scan().err,
            fmt::format("{0}/u.cuh:7:27: error: kernel 'sum' is already at "
                        "{0}/t.cuh:6: rename one of them\n",
                        dir));
}

TEST(ScanProgram, ReadsOddFiles) {
  const TemplatesFolder folder;
  folder.write("empty.cuh", "");
  folder.write("no_newline.cuh", "//");
  folder.write("bytes.cuh", std::string("\xff\xfe\0\x01 \"\n'", 8));
  folder.write("directive.cuh", "#include");
  EXPECT_EQ(folder.scan().exit_code, 1);

  const TemplatesFolder windows;
  windows.write("t.cuh", "\xef\xbb\xbf// caf\xe9\r\n" + kBase);
  EXPECT_EQ(windows.scan().err, "");
}

TEST(ScanProgram, RefusesAFolderWithoutPrelude) {
  const ProcessResult result = run_process(
      fmt::format("'{}' --templates-dir /nowhere", LOGPJIT_SCAN_PROGRAM));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err,
            "logpjit-scan: no prelude/scan.h in '/nowhere': give the folder of "
            "logpjit's templates with --templates-dir\n");
}

TEST(ScanProgram, RefusesAMissingFileAndAFolder) {
  const TemplatesFolder folder;
  EXPECT_THAT(folder.scan("/nowhere/t.cuh").err,
              HasSubstr("cannot read '/nowhere/t.cuh'"));
  EXPECT_THAT(folder.scan(quoted(folder.path())).err, HasSubstr("cannot read"));
  EXPECT_EQ(folder.scan("/nowhere/t.cuh").exit_code, 1);
}

TEST(ScanProgram, RefusesAnUnwritableOutput) {
  const TemplatesFolder folder;
  folder.write("t.cuh", kBase);
  const ProcessResult result = folder.scan("-o /nowhere/out.json");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("cannot write '/nowhere/out.json'"));
}

TEST(ScanProgram, TellsWrongUsageFromFailure) {
  const TemplatesFolder folder;
  EXPECT_EQ(folder.scan("--no-such-option").exit_code, 2);
  EXPECT_EQ(folder.scan("--help").exit_code, 0);
}

}  // namespace
}  // namespace logpjit::generator
