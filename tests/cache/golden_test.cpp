// Files written by format version 1, which every later version must read. They
// are never regenerated; a new version gets a folder beside them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cache/bundle.hpp"
#include "cache/config_line.hpp"
#include "cache/config_store.hpp"
#include "cache/entry_name.hpp"
#include "cache/image_cache.hpp"
#include "tests/support/cache/samples.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::cache {
namespace {

using logpjit::testing::bytes_of;
using logpjit::testing::TemporaryDirectory;
using logpjit::testing::WarningLog;
using logpjit::testing::write_bytes;

namespace fs = std::filesystem;

struct Golden {
  Key key;
  Image image;
};

Golden golden(ImageKind kind, const std::string& arch, const std::string& code,
              const LaunchFacts& facts) {
  Golden result;
  result.key.add("arch", arch);
  result.key.add("compiler", "nvrtc 13.0 build-id 00ff");
  result.key.add("options", "--no-cache\n--fmad=false");
  result.key.add("spec", "family=1 op=logp vocab=151936");
  result.image.kind = kind;
  result.image.entry = "logpjit_kernel";
  result.image.facts = facts;
  result.image.compile_ms = 43.25;
  for (char c : code) result.image.bytes.push_back(static_cast<std::byte>(c));
  return result;
}

std::vector<Golden> all_golden() {
  return {golden(ImageKind::kCubin, "sm_90a", std::string("\x7f\0\xff", 3),
                 {32, 1024, 0, 0, 96}),
          golden(ImageKind::kPtx, "compute_90", ".version 9.0\n", {}),
          golden(ImageKind::kSharedObject, "x86_64",
                 "\x7f"
                 "ELF",
                 {-1, -1, -1, -1, 2147483647})};
}

ConfigRecord golden_record() {
  return {.spec = "family=1 op=logp vocab=151936",
          .device = {{"cc", "9.0"}, {"sms", "132"}},
          .config = "block=512,unroll=4",
          .time_us = 12.5,
          .spread = 0.0078125,
          .measured_with = {{"driver", "580.159"}}};
}

class GoldenTest : public ::testing::Test {
 protected:
  static fs::path file(const std::string& name) {
    return fs::path(LOGPJIT_SOURCE_DIR) / "tests/golden/cache/v1" / name;
  }
  /// A copy with the modes of a cache, which a checkout does not keep.
  void copy(const std::string& name) {
    const fs::path target = home_.path() / name;
    write_bytes(target, bytes_of(file(name)));
    chmod(target.c_str(), 0644);
  }
  TemporaryDirectory home_;
  WarningLog log_;
};

TEST_F(GoldenTest, EntriesOfVersionOneAreHits) {
  CacheOptions options;
  options.directory = home_.path();
  options.warn = log_.sink();
  for (const Golden& each : all_golden()) copy(entry_name(each.key));
  ImageCache cache(options);
  for (const Golden& each : all_golden()) {
    const auto found = cache.find(each.key);
    ASSERT_TRUE(found) << each.key.text();
    EXPECT_EQ(*found->image, each.image);
  }
  EXPECT_TRUE(log_.lines().empty());
}

TEST_F(GoldenTest, ExportsOfVersionOneAreImported) {
  const auto result = import_entries(real_file_system(), file("export"),
                                     home_.path() / "cache");
  EXPECT_EQ(result.added, all_golden().size());
}

TEST_F(GoldenTest, ConfigsOfVersionOneAreLoaded) {
  copy("configs.jsonl");
  ConfigStore store(home_.path(), Role::kUser, log_.sink());
  EXPECT_EQ(store.load(), std::vector{golden_record()});
  EXPECT_TRUE(log_.lines().empty());
}

TEST_F(GoldenTest, TheFormatIsStillWrittenTheSame) {
  // A difference here is a new format: give it a number and a folder.
  const fs::path now = home_.path() / "now";
  CacheOptions options;
  options.directory = now;
  ImageCache cache(options);
  for (const Golden& each : all_golden()) {
    cache.find_or_compile(each.key, [&] { return each.image; });
    const std::string name = entry_name(each.key);
    EXPECT_EQ(bytes_of(now / name), bytes_of(file(name))) << now / name;
  }
  export_entries(real_file_system(), now, now / "export");
  EXPECT_EQ(bytes_of(now / "export"), bytes_of(file("export")));
  ConfigStore(now, Role::kUser, {}).append({golden_record()});
  EXPECT_EQ(bytes_of(now / "configs.jsonl"), bytes_of(file("configs.jsonl")));
}

}  // namespace
}  // namespace logpjit::cache
