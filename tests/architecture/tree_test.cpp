// Reading a source tree.
#include "tests/architecture/tree.hpp"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <fstream>

namespace logpjit::architecture {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

class MadeUpTree : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "logpjit-tree-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  std::vector<std::string> paths() const {
    std::vector<std::string> names;
    for (const SourceFile& file : read_tree(root_).files) {
      names.push_back(file.path);
    }
    return names;
  }

  fs::path root_;
};

TEST_F(MadeUpTree, ListsSourcesSortedAndLeavesDataOut) {
  write("cache/key.cpp", "// c\n");
  write("cache/key.hpp", "// h\n");
  write("cache/entry.bin", "\x7f");
  write("templates/manifest.json", "{}");
  write("CMakeLists.txt", "# top\n");
  write("scripts/test", "#!/bin/bash\n");
  EXPECT_THAT(paths(), ElementsAre("CMakeLists.txt", "cache/key.cpp",
                                   "cache/key.hpp", "scripts/test"));
}

TEST_F(MadeUpTree, LeavesOutWhatTheRootIgnores) {
  write(".gitignore", "/build/\n/out\n*.pyc\n");
  write("build/x.cpp", "// x\n");
  write("out/x.cpp", "// x\n");
  write(".deps/x.cpp", "// x\n");
  write("cli/out/x.cpp", "// an ignored name counts at the root only\n");
  write("python/__pycache__/x.py", "# x\n");
  fs::create_directories(root_ / "empty/folder");
  EXPECT_THAT(paths(), ElementsAre("cli/out/x.cpp"));
  EXPECT_THAT(read_tree(root_).top_level, ElementsAre("cli"));
}

TEST_F(MadeUpTree, ListsEveryOtherTopLevelName) {
  write("notes", "text");
  write("stuff/data.bin", "x");
  EXPECT_THAT(read_tree(root_).top_level, ElementsAre("notes", "stuff"));
}

TEST(MakeFile, SplitsLines) {
  EXPECT_THAT(make_file("a.cpp", "x\n\ny").lines, ElementsAre("x", "", "y"));
  EXPECT_THAT(make_file("a.cpp", "x\n").lines, ElementsAre("x"));
  EXPECT_TRUE(make_file("a.cpp", "").lines.empty());
}

TEST(MakeFile, BlanksByLanguage) {
  EXPECT_EQ(make_file("a.cpp", "a // b").code[0], "a     ");
  EXPECT_EQ(make_file("CMakeLists.txt", "a # b").code[0], "a    ");
}

TEST(ParseInclude, ReadsBothForms) {
  EXPECT_EQ(parse_include("#include <vector>").target, "vector");
  EXPECT_TRUE(parse_include("#include <vector>").angled);
  EXPECT_EQ(parse_include("  #  include\t\"a/b.hpp\"  // c").target, "a/b.hpp");
  EXPECT_FALSE(parse_include("#include \"a/b.hpp\"").angled);
}

TEST(ParseInclude, IgnoresEverythingElse) {
  for (const char* line :
       {"", "#", "#define X", "#include", "#include X", "#include <open",
        "include <a>", "int x; #include <a>", "// #include <a>"}) {
    EXPECT_EQ(parse_include(line).target, "") << line;
  }
}

}  // namespace
}  // namespace logpjit::architecture
