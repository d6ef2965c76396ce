// Odd bytes and extreme numbers survive being turned into C++.
#include <gtest/gtest.h>

#include <filesystem>

#include "generator/content.hpp"
#include "generator/manifest.hpp"

namespace logpjit::generator {
namespace {

const std::filesystem::path kData =
    std::filesystem::path(LOGPJIT_SOURCE_DIR) / "tests/generator/data/odd";

TEST(EmbedOdd, ManifestComesOutAsItWentIn) {
  EXPECT_EQ(embedded_manifest(),
            parse_manifest(read_content(kData / "manifest.json")));
}

TEST(EmbedOdd, BytesComeOutAsTheyWentIn) {
  for (const char* name :
       {"odd.cuh", "common/empty.cuh", "prelude/one_line.h"}) {
    EXPECT_EQ(embedded_file(name), read_content(kData / name)) << name;
  }
  EXPECT_NE(embedded_file("odd.cuh").find('\0'), std::string_view::npos);
}

}  // namespace
}  // namespace logpjit::generator
