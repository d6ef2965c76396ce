// Each rule on made-up files: what breaks it, and what only looks like it.
#include "tests/architecture/rules.hpp"

#include <gmock/gmock.h>

namespace logpjit::architecture {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

/// The violations of one file that begins as a file should.
std::vector<std::string> violations(const std::string& path,
                                    const std::string& text) {
  std::string head = is_cpp(path) ? "// A file.\n" : "# A file.\n";
  if (path.ends_with(".hpp")) head += "#pragma once\n";
  Tree tree;
  tree.files = {make_file(path, head + text),
                make_file(path.substr(0, path.find('/')) + "/README.md", "")};
  std::vector<std::string> lines;
  for (const Violation& violation : check(tree)) {
    lines.push_back(violation.text());
  }
  return lines;
}

std::vector<std::string> including(const std::string& path,
                                   const std::string& target) {
  return violations(path, "#include " + target + "\n");
}

TEST(Violation, NamesFileAndLine) {
  EXPECT_EQ((Violation{"a.cpp", 7, "is wrong"}).text(), "a.cpp:7: is wrong");
  EXPECT_EQ((Violation{"a", 0, "is wrong"}).text(), "a: is wrong");
}

struct Inclusion {
  const char* path;
  const char* target;
  bool allowed;
};

class Includes : public testing::TestWithParam<Inclusion> {};

TEST_P(Includes, FollowTheLayers) {
  const Inclusion& param = GetParam();
  const auto found = including(param.path, param.target);
  if (param.allowed) {
    EXPECT_THAT(found, IsEmpty());
    return;
  }
  const std::size_t line = std::string(param.path).ends_with(".hpp") ? 3 : 2;
  EXPECT_THAT(found, ElementsAre(StartsWith(std::string(param.path) + ":" +
                                            std::to_string(line) + ": ")));
}

// clang-format off
INSTANTIATE_TEST_SUITE_P(All, Includes, testing::Values(
    Inclusion{"runtime/include/logpjit/a.hpp", "<vector>", true},
    Inclusion{"runtime/include/logpjit/a.hpp", "\"logpjit/b.hpp\"", true},
    Inclusion{"runtime/include/logpjit/a.h", "<stdint.h>", true},
    Inclusion{"runtime/include/logpjit/a.hpp", "\"cache/key.hpp\"", false},
    Inclusion{"runtime/include/logpjit/a.hpp", "\"runtime/x.hpp\"", false},
    Inclusion{"runtime/include/logpjit/a.hpp", "<fmt/format.h>", false},
    Inclusion{"runtime/include/logpjit/a.hpp", "<unistd.h>", false},
    Inclusion{"runtime/include/logpjit/a.hpp", "\"b.hpp\"", false},
    Inclusion{"generator/a.cpp", "\"logpjit/error.hpp\"", true},
    Inclusion{"generator/a.cpp", "\"generator/b.hpp\"", true},
    Inclusion{"generator/a.cpp", "<fmt/format.h>", true},
    Inclusion{"generator/a.cpp", "\"cache/key.hpp\"", false},
    Inclusion{"generator/a.cpp", "\"runtime/device.hpp\"", false},
    Inclusion{"generator/a.cpp", "\"b.hpp\"", false},
    Inclusion{"cache/a.cpp", "\"cache/key.hpp\"", true},
    Inclusion{"cache/a.cpp", "\"generator/source.hpp\"", false},
    Inclusion{"cache/a.cpp", "\"runtime/device.hpp\"", false},
    Inclusion{"runtime/a.cpp", "\"cache/key.hpp\"", true},
    Inclusion{"runtime/a.cpp", "\"generator/source.hpp\"", true},
    Inclusion{"runtime/a.cpp", "\"tuning/verify.hpp\"", false},
    Inclusion{"runtime/a.cpp", "\"templates/common/a.cuh\"", true},
    Inclusion{"tuning/a.cpp", "\"templates/common/a.cuh\"", true},
    Inclusion{"cli/a.cpp", "\"templates/common/a.cuh\"", false},
    Inclusion{"runtime/a.cpp", "\"templates/logp.cuh\"", false},
    Inclusion{"cache/a.cpp", "\"templates/common/a.cuh\"", false},
    Inclusion{"runtime/cpu/a.cpp", "\"templates/prelude/host.h\"", true},
    Inclusion{"runtime/a.cpp", "\"templates/prelude/host.h\"", false},
    Inclusion{"tuning/a.cpp", "\"runtime/device.hpp\"", true},
    Inclusion{"tuning/a.cpp", "\"cli/main.hpp\"", false},
    Inclusion{"cli/a.cpp", "\"tuning/verify.hpp\"", true},
    Inclusion{"cli/a.cpp", "\"tests/x.hpp\"", false}));

INSTANTIATE_TEST_SUITE_P(Placed, Includes, testing::Values(
    Inclusion{"generator/scan/a.cpp", "<clang-c/Index.h>", true},
    Inclusion{"generator/a.cpp", "<clang-c/Index.h>", false},
    Inclusion{"cli/a.cpp", "<clang-c/Index.h>", false},
    Inclusion{"tests/generator/a.cpp", "<clang-c/Index.h>", false},
    Inclusion{"generator/scan/a.cpp", "\"generator/scan/b.hpp\"", true},
    Inclusion{"generator/a.cpp", "\"generator/scan/b.hpp\"", false},
    Inclusion{"tests/generator/a.cpp", "\"generator/scan/b.hpp\"", true},
    Inclusion{"cache/a.cpp", "<nlohmann/json.hpp>", true},
    Inclusion{"cache/a.hpp", "<nlohmann/json.hpp>", false},
    Inclusion{"tests/cache/a.hpp", "<nlohmann/json.hpp>", false},
    Inclusion{"cli/a.cpp", "<CLI/CLI.hpp>", true},
    Inclusion{"runtime/a.cpp", "<CLI/CLI.hpp>", false},
    Inclusion{"runtime/cpu/a.cpp", "<boost/context/fiber.hpp>", true},
    Inclusion{"runtime/a.cpp", "<boost/context/fiber.hpp>", false},
    Inclusion{"runtime/cuda/a.cpp", "<dlfcn.h>", true},
    Inclusion{"cache/a.cpp", "<dlfcn.h>", false},
    Inclusion{"runtime/cuda/a.cpp", "<cuda.h>", false},
    Inclusion{"runtime/cuda/a.cpp", "<cuda_runtime_api.h>", false},
    Inclusion{"runtime/cuda/a.cpp", "\"runtime/cuda/driver.hpp\"", true},
    Inclusion{"runtime/cuda/a.cpp", "<nvrtc.h>", false},
    Inclusion{"runtime/collective/a.cpp", "<nccl.h>", false}));

INSTANTIATE_TEST_SUITE_P(Templates, Includes, testing::Values(
    Inclusion{"templates/a.cuh", "\"common/lanes.cuh\"", true},
    Inclusion{"templates/common/a.cuh", "\"common/lanes.cuh\"", true},
    Inclusion{"templates/a.cuh", "\"prelude/device.h\"", false},
    Inclusion{"templates/a.cuh", "\"b.cuh\"", false},
    Inclusion{"templates/a.cuh", "<cstdint>", false},
    Inclusion{"templates/a.cuh", "<cuda_bf16.h>", false},
    Inclusion{"templates/prelude/host.h", "<cmath>", true},
    Inclusion{"templates/prelude/device.h", "<cmath>", false}));
// clang-format on

TEST(Includes, CommentedOutOnesAreNone) {
  EXPECT_THAT(violations("cache/a.cpp",
                         "// #include \"cli/x.hpp\"\n"
                         "/*\n#include \"cli/x.hpp\"\n*/\n"
                         "auto s = R\"(\n#include <cuda.h>\n)\";"),
              IsEmpty());
}

TEST(Links, PointOneWay) {
  const auto linking = [](const std::string& folder, const std::string& name) {
    return violations(folder + "/CMakeLists.txt",
                      "target_link_libraries(x PRIVATE " + name + ")\n");
  };
  EXPECT_THAT(linking("cache", "logpjit_generator"),
              ElementsAre(StartsWith("cache/CMakeLists.txt:2: ")));
  EXPECT_THAT(linking("generator", "logpjit_cache"), testing::SizeIs(1));
  EXPECT_THAT(linking("runtime", "logpjit_tuning"), testing::SizeIs(1));
  EXPECT_THAT(linking("runtime/cpu", "logpjit_cli"), testing::SizeIs(1));
  EXPECT_THAT(linking("runtime", "logpjit_generator logpjit_cache"), IsEmpty());
  EXPECT_THAT(linking("cli", "logpjit_tuning logpjit_runtime"), IsEmpty());
  EXPECT_THAT(linking("tests", "logpjit_cache logpjit_generator"), IsEmpty());
}

TEST(Words, OnlyOneFileReadsTheEnvironment) {
  EXPECT_THAT(violations("runtime/options.cpp", "auto x = getenv(n);"),
              IsEmpty());
  for (const char* text : {"auto x = getenv(n);", "auto x = std::getenv(n);",
                           "auto x = ::secure_getenv(n);"}) {
    EXPECT_THAT(
        violations("cli/a.cpp", text),
        ElementsAre(AllOf(StartsWith("cli/a.cpp:2: "), HasSubstr("getenv"))));
  }
  EXPECT_THAT(violations("cli/a.cpp", "print(\"getenv\");  // getenv"),
              IsEmpty());
  EXPECT_THAT(violations("cli/a.cpp", "my_getenv_table();"), IsEmpty());
}

TEST(Words, InlineAssemblyHasOnePlace) {
  EXPECT_THAT(violations("templates/prelude/device.h", "asm(\"x\");"),
              IsEmpty());
  for (const char* path : {"templates/common/a.cuh", "templates/prelude/host.h",
                           "runtime/cpu/a.cpp", "tests/cache/a.cpp"}) {
    EXPECT_THAT(violations(path, "asm volatile(\"x\");"), testing::SizeIs(1));
    EXPECT_THAT(violations(path, "__asm__(\"x\");"), testing::SizeIs(1));
  }
  EXPECT_THAT(violations("cache/a.cpp", "int assembly = plasma;"), IsEmpty());
}

TEST(Words, TextOfKeysAndSourcesComesFromFmt) {
  for (const char* text : {"auto s = std::to_string(1);", "#include <sstream>",
                           "#include <iostream>"}) {
    EXPECT_THAT(violations("generator/a.cpp", text), testing::SizeIs(1));
    EXPECT_THAT(violations("cache/a.cpp", text), testing::SizeIs(1));
    EXPECT_THAT(violations("cli/a.cpp", text), IsEmpty());
  }
  EXPECT_THAT(violations("cache/a.cpp", "#include <fstream>"), IsEmpty());
}

TEST(Words, EmptyNamesAndNotesToSelfAreRefused) {
  EXPECT_THAT(violations("cache/a.cpp", "class CacheManager {};"),
              testing::SizeIs(1));
  EXPECT_THAT(violations("cache/a.cpp", "struct Utils {};"),
              testing::SizeIs(1));
  EXPECT_THAT(violations("cache/a.cpp", "struct Managers {};"), IsEmpty());
  EXPECT_THAT(violations("cache/a.cpp",
                         "// TO"
                         "DO: later"),
              testing::SizeIs(1));
  EXPECT_THAT(violations("cache/a.cpp", "using namespace std;"),
              testing::SizeIs(1));
}

TEST(Form, FourHundredLinesAreTheMost) {
  const auto lines = [](std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += "int x;\n";
    return violations("cache/a.cpp", text);
  };
  EXPECT_THAT(lines(399), IsEmpty()) << "399 and the head comment";
  EXPECT_THAT(lines(400), ElementsAre(StartsWith("cache/a.cpp:401: ")));
}

TEST(Form, AFileSaysWhatItIs) {
  Tree tree;
  tree.files = {make_file("cache/README.md", ""),
                make_file("cache/a.cpp", "int x;\n"),
                make_file("cache/b.cpp", ""),
                make_file("cache/c.hpp", "// c.\nint x;\n")};
  const Violations found = check(tree);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_THAT(found[0].text(), StartsWith("cache/a.cpp:1: "));
  EXPECT_THAT(found[1].text(), StartsWith("cache/b.cpp:1: "));
  EXPECT_THAT(found[2].text(), HasSubstr("#pragma once"));
}

TEST(Form, AProgramMaySayItBelowItsFirstLine) {
  Tree tree;
  tree.files = {make_file("scripts/README.md", ""),
                make_file("scripts/demo", "#!/bin/bash\n# Shows it.\n"),
                make_file("scripts/test", "#!/bin/bash\nset -e\n")};
  const Violations found = check(tree);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].file, "scripts/test");
}

TEST(Form, FilesAreNamedInSnakeCase) {
  EXPECT_THAT(violations("cache/CacheKey.cpp", ""), testing::SizeIs(1));
  EXPECT_THAT(violations("cache/cache-key.cpp", ""), testing::SizeIs(1));
  EXPECT_THAT(violations("cache/key.cc", ""), testing::SizeIs(1));
  EXPECT_THAT(violations("cache/key.h", ""), testing::SizeIs(1));
  EXPECT_THAT(violations("templates/prelude/scan.h", ""), IsEmpty());
  EXPECT_THAT(violations("tests/consumer/main.c", ""), IsEmpty());
}

TEST(Layout, TheTopLevelIsFixed) {
  Tree tree;
  tree.top_level = {"CMakeLists.txt", "LICENSE", "cache", "notes.md", "src"};
  const Violations found = check(tree);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].file, "notes.md");
  EXPECT_EQ(found[1].file, "src");
}

TEST(Layout, EveryFolderHasAReadme) {
  Tree tree;
  tree.files = {make_file("cache/a.cpp", "// A.\n"),
                make_file("cli/README.md", "")};
  const Violations found = check(tree);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].file, "cache/README.md");
}

TEST(Check, TestDataMayBreakEveryRule) {
  Tree tree;
  tree.files = {make_file("tests/README.md", ""),
                make_file("tests/generator/data/Bad.cuh", "asm(x);"),
                make_file("tests/golden/logp.cuh", "asm(x);")};
  EXPECT_THAT(check(tree), IsEmpty());
  tree.files.push_back(make_file("tests/golden/golden_test.cpp", "asm(x);"));
  EXPECT_EQ(check(tree).size(), 2u);
}

}  // namespace
}  // namespace logpjit::architecture
