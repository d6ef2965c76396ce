// What the build embedded equals what lies in templates/.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "generator/content.hpp"
#include "generator/manifest.hpp"
#include "logpjit/error.hpp"

namespace logpjit::generator {
namespace {

namespace fs = std::filesystem;

const fs::path kTemplates = fs::path(LOGPJIT_SOURCE_DIR) / "templates";

TEST(Embedded, ManifestIsTheScansOne) {
  EXPECT_EQ(embedded_manifest(),
            parse_manifest(read_content(LOGPJIT_MANIFEST)));
}

TEST(Embedded, ManifestIsBuiltOnceForAllThreads) {
  std::vector<const Manifest*> seen(8, nullptr);
  {
    std::vector<std::jthread> threads;
    for (const Manifest*& place : seen) {
      threads.emplace_back([&place] { place = &embedded_manifest(); });
    }
  }
  for (const Manifest* manifest : seen) EXPECT_EQ(manifest, seen[0]);
}

TEST(Embedded, FilesOfEveryClosureAreThereWithTheirDigests) {
  for (const TemplateManifest& each : embedded_manifest().templates) {
    EXPECT_EQ(each.closure.back().path, each.file);
    for (const ClosureFile& file : each.closure) {
      EXPECT_EQ(content_digest(embedded_file(file.path)), file.digest);
    }
  }
}

TEST(Embedded, EveryTemplateFileIsThereByteForByte) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kTemplates)) {
    const fs::path extension = entry.path().extension();
    if (extension != ".cuh" && extension != ".h") continue;
    const std::string name =
        entry.path().lexically_relative(kTemplates).generic_string();
    EXPECT_EQ(embedded_file(name), read_content(entry.path())) << name;
    ++files;
  }
  EXPECT_GT(files, 2);
}

TEST(Embedded, MissingFileIsAnInternalError) {
  for (const char* name : {"none.cuh", "", "common", "../CMakeLists.txt"}) {
    try {
      embedded_file(name);
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInternal);
      EXPECT_NE(error.message().find(name), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace logpjit::generator
