// Listing, showing, checking, clearing and trimming a directory.
#include "cache/maintenance.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "cache/entry_name.hpp"
#include "cache/image_cache.hpp"
#include "logpjit/error.hpp"
#include "tests/support/cache/samples.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::cache {
namespace {

using logpjit::testing::names_in;
using logpjit::testing::sample_image;
using logpjit::testing::sample_key;
using logpjit::testing::TemporaryDirectory;
using logpjit::testing::write_bytes;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

namespace fs = std::filesystem;

class MaintenanceTest : public ::testing::Test {
 protected:
  MaintenanceTest() {
    CacheOptions options;
    options.directory = directory();
    ImageCache cache(options);
    for (int i = 0; i < 3; ++i) {
      cache.find_or_compile(sample_key(i), [&] { return sample_image(i); });
    }
  }
  fs::path directory() { return home_.path() / "cache"; }
  fs::path entry(int number) {
    return directory() / entry_name(sample_key(number));
  }
  std::string hash(int number) { return sample_key(number).hash(); }

  FileSystem& files_ = real_file_system();
  TemporaryDirectory home_;
};

TEST_F(MaintenanceTest, ListsGoodEntriesByName) {
  write_bytes(directory() / (std::string(32, '0') + ".0000000000000000.lpj"),
              {});
  const auto listed = list_entries(files_, directory());
  ASSERT_EQ(listed.size(), 3u);
  for (std::size_t i = 0; i + 1 < listed.size(); ++i) {
    EXPECT_LT(listed[i].name, listed[i + 1].name);
  }
  for (const Listed& each : listed) {
    EXPECT_THAT(each.entry.key_text, HasSubstr("arch: sm_90a\n"));
    EXPECT_TRUE(each.entry.image.bytes.empty());
    EXPECT_EQ(each.bytes, fs::file_size(directory() / each.name));
    EXPECT_LT(std::time(nullptr) - each.used, 60);
  }
}

TEST_F(MaintenanceTest, AbsentIsEmptyAndNotMade) {
  const fs::path absent = home_.path() / "absent";
  EXPECT_THAT(list_entries(files_, absent), IsEmpty());
  EXPECT_EQ(check_entries(files_, absent, true).good, 0u);
  EXPECT_EQ(clear_entries(files_, absent), 0u);
  EXPECT_EQ(trim_entries(files_, absent, {}).kept_entries, 0u);
  EXPECT_FALSE(fs::exists(absent));
}

TEST_F(MaintenanceTest, UntrustedIsAnErrorThatSaysWhatToDo) {
  chmod(directory().c_str(), 0777);
  try {
    list_entries(files_, directory());
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_THAT(error.message(), HasSubstr("run chmod"));
  }
  EXPECT_THROW(check_entries(files_, directory(), true), Error);
  EXPECT_THROW(clear_entries(files_, directory()), Error);
  EXPECT_TRUE(fs::exists(entry(0)));
}

TEST_F(MaintenanceTest, FindsByPrefix) {
  const Listed found = find_entry(files_, directory(), hash(1).substr(0, 8));
  EXPECT_EQ(found.entry.key_text, sample_key(1).text());
  EXPECT_EQ(found.entry.image, sample_image(1));
  EXPECT_EQ(find_entry(files_, directory(), found.name).name, found.name);
}

TEST_F(MaintenanceTest, PrefixesThatFitNoneSeveralOrAreShort) {
  const std::string twin = hash(1).substr(0, 31) +
                           (hash(1).back() == '0' ? "1" : "0") +
                           ".0000000000000000.lpj";
  write_bytes(directory() / twin, {});
  for (const std::string& prefix :
       {std::string("zzzz"), std::string(""), hash(1).substr(0, 3),
        hash(1).substr(0, 31), std::string("../cache")}) {
    EXPECT_THROW(find_entry(files_, directory(), prefix), Error) << prefix;
  }
  EXPECT_THROW(find_entry(files_, directory(), twin), Error);  // damaged
}

TEST_F(MaintenanceTest, ChecksAndRepairs) {
  write_bytes(entry(0), {});
  fs::copy_file(entry(1), entry(7));  // under another key's name
  fs::remove(entry(2));
  fs::create_symlink(entry(1), entry(2));
  std::ofstream(entry(5).string() + ".bad") << "x";
  std::ofstream(directory() / ".tmp-0123") << "x";
  const CheckResult found = check_entries(files_, directory(), false);
  EXPECT_EQ(found.good, 1u);
  EXPECT_EQ(found.problems.size(), 3u);
  EXPECT_THAT(
      found.debris,
      UnorderedElementsAre(".tmp-0123", entry_name(sample_key(5)) + ".bad"));
  EXPECT_FALSE(found.repaired);
  EXPECT_EQ(names_in(directory(), "").size(), 7u);

  EXPECT_TRUE(check_entries(files_, directory(), true).repaired);
  EXPECT_THAT(names_in(directory(), ""),
              UnorderedElementsAre("lock", entry_name(sample_key(1))));
  const CheckResult clean = check_entries(files_, directory(), false);
  EXPECT_EQ(clean.good, 1u);
  EXPECT_THAT(clean.problems, IsEmpty());
}

TEST_F(MaintenanceTest, ClearSparesConfigsLockAndStrangers) {
  for (const char* name : {"configs.jsonl", "notes.txt", "x.lpj"}) {
    std::ofstream(directory() / name) << "x";
  }
  std::ofstream(directory() / ".tmp-0123") << "x";
  std::ofstream(entry(0).string() + ".bad") << "x";
  EXPECT_EQ(clear_entries(files_, directory()), 3u);
  EXPECT_THAT(
      names_in(directory(), ""),
      UnorderedElementsAre("configs.jsonl", "notes.txt", "x.lpj", "lock"));
}

TEST_F(MaintenanceTest, Trims) {
  const TrimResult result = trim_entries(files_, directory(), {1 << 20, 1});
  EXPECT_EQ(result.kept_entries, 1u);
  EXPECT_EQ(names_in(directory(), ".lpj").size(), 1u);
}

}  // namespace
}  // namespace logpjit::cache
