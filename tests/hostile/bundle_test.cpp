// Hostile exports: refused before anything is written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>

#include "cache/bundle.hpp"
#include "cache/bundle_format.hpp"
#include "cache/byte_reader.hpp"
#include "cache/digest.hpp"
#include "cache/entry.hpp"
#include "cache/entry_name.hpp"
#include "logpjit/error.hpp"
#include "tests/support/cache/samples.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::cache {
namespace {

using logpjit::testing::bytes_of;
using logpjit::testing::memory_directory;
using logpjit::testing::sample_image;
using logpjit::testing::sample_key;
using logpjit::testing::TemporaryDirectory;
using logpjit::testing::write_bytes;
using ::testing::AllOf;
using ::testing::HasSubstr;

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

struct Member {
  std::string name;
  Bytes entry;
  std::uint64_t claimed = 0;
};

Member good_member(int number) {
  Member member;
  member.name = entry_name(sample_key(number));
  member.entry = encode(sample_key(number).text(), sample_image(number, 500));
  member.claimed = member.entry.size();
  return member;
}

/// As an attacker writes it, with a digest that is right.
Bytes bundle(const std::vector<Member>& members,
             std::optional<std::uint64_t> count = {},
             std::uint32_t version = kBundleFormat) {
  ByteWriter writer;
  writer.text(kBundleMagic);
  writer.u32(version);
  writer.u32(0);
  for (const Member& member : members) {
    writer.u32(static_cast<std::uint32_t>(member.name.size()));
    writer.u32(0);
    writer.u64(member.claimed);
    writer.text(member.name);
    writer.bytes(member.entry);
  }
  writer.u64(0);
  writer.u64(0);
  writer.u64(count.value_or(members.size()));
  const Digest all = digest(writer.written());
  writer.bytes(all);
  return writer.take();
}

class HostileBundleTest : public ::testing::Test {
 protected:
  fs::path file() { return home_.path() / "export"; }
  fs::path directory() { return home_.path() / "cache"; }

  void expect_refused(const Bytes& bytes, const std::string& why) {
    write_bytes(file(), bytes);
    expect_refused(why);
  }
  void expect_refused(const std::string& why) {
    SCOPED_TRACE(why);
    try {
      import_entries(real_file_system(), file(), directory());
      ADD_FAILURE() << "imported";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error.message(),
                  AllOf(HasSubstr(why), HasSubstr(file().string()),
                        HasSubstr("nothing of it was imported")));
    }
    EXPECT_FALSE(fs::exists(directory()));
    EXPECT_FALSE(fs::exists(home_.path() / "evil"));
  }

  TemporaryDirectory home_{memory_directory()};
};

TEST_F(HostileBundleTest, TheGoodOneIsTaken) {
  write_bytes(file(), bundle({good_member(1), good_member(2)}));
  EXPECT_EQ(import_entries(real_file_system(), file(), directory()).added, 2u);
}

TEST_F(HostileBundleTest, NamesThatEscape) {
  for (const char* name :
       {"../evil", "/tmp/evil", "evil", "a/b", "lock", "configs.jsonl", ".",
        "..", ".tmp-1", "\x1b[31m", "",
        "../aaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbb.lpj"}) {
    Member member = good_member(1);
    member.name = name;
    expect_refused(bundle({good_member(2), member}),
                   *name == '\0' ? "no valid head" : "not named like an entry");
  }
  Member member = good_member(1);
  member.name = std::string("evil\0x", 6);
  expect_refused(bundle({member}), "\"evil?x\"");
}

TEST_F(HostileBundleTest, ANameThatIsNotTheKeys) {
  Member member = good_member(1);
  member.name = good_member(2).name;
  expect_refused(bundle({member}), "another key");
}

TEST_F(HostileBundleTest, Duplicates) {
  expect_refused(bundle({good_member(1), good_member(1)}), "occurs twice");
}

TEST_F(HostileBundleTest, SizesThatLie) {
  Member member = good_member(1);
  member.claimed = 10'000'000'000;
  expect_refused(bundle({member}), "claims 10000000000 bytes");
  member.claimed = ~std::uint64_t{0};
  expect_refused(bundle({member}), "claims");
  member.claimed = member.entry.size() + 1;
  expect_refused(bundle({member}), "damaged");
  member.claimed = member.entry.size() - 1;
  expect_refused(bundle({member}), "damaged");
  member.claimed = kMaxEntryBytes;
  expect_refused(bundle({member}), "cut short");
  member.claimed = 0;
  expect_refused(bundle({member}), "damaged");
}

TEST_F(HostileBundleTest, MembersOrSumsThatAreDamaged) {
  Member member = good_member(1);
  member.entry[200] ^= std::byte{1};
  expect_refused(bundle({good_member(2), member}), "damaged: wrong digest");
  expect_refused(bundle({good_member(1)}, 2), "number of members");
  expect_refused(bundle({good_member(1)}, {}, 2), "format version 2");
  Bytes wrong = bundle({good_member(1)});
  wrong.back() ^= std::byte{1};
  expect_refused(wrong, "digest is wrong");
  Bytes longer = bundle({good_member(1)});
  longer.push_back({});
  expect_refused(longer, "follows its end");
  expect_refused(Bytes(100), "does not begin like one");
  expect_refused(Bytes(), "cut short");
}

TEST_F(HostileBundleTest, EveryTruncation) {
  const Bytes whole = bundle({good_member(1)});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_bytes(file(), {whole.begin(), whole.begin() + size});
    EXPECT_THROW(import_entries(real_file_system(), file(), directory()), Error)
        << size;
  }
  EXPECT_FALSE(fs::exists(directory()));
}

TEST_F(HostileBundleTest, RandomDamage) {
  const Bytes whole = bundle({good_member(1), good_member(2)});
  std::mt19937 random(5);
  for (int round = 0; round < 1000; ++round) {
    Bytes bad = whole;
    bad[random() % bad.size()] ^= static_cast<std::byte>(random() % 255 + 1);
    write_bytes(file(), bad);
    EXPECT_THROW(import_entries(real_file_system(), file(), directory()),
                 Error);
  }
  EXPECT_FALSE(fs::exists(directory()));
}

TEST_F(HostileBundleTest, FilesThatAreNone) {
  expect_refused("No such file");
  fs::create_directory(file());
  expect_refused("not a regular file");
  fs::remove(file());
  ASSERT_EQ(mkfifo(file().c_str(), 0600), 0);
  expect_refused("not a regular file");
}

TEST_F(HostileBundleTest, ASparseGiant) {
  write_bytes(file(), bundle({good_member(1)}));
  fs::resize_file(file(), std::uintmax_t{1} << 36);
  expect_refused("follows its end");
}

TEST_F(HostileBundleTest, LinksInTheCacheAreReplacedNotFollowed) {
  write_bytes(file(), bundle({good_member(1)}));
  fs::create_directory(directory());
  chmod(directory().c_str(), 0700);
  const fs::path victim = home_.path() / "victim";
  write_bytes(victim, Bytes(10));
  fs::create_symlink(victim, directory() / good_member(1).name);
  import_entries(real_file_system(), file(), directory());
  EXPECT_EQ(bytes_of(victim), Bytes(10));
  EXPECT_TRUE(fs::is_regular_file(
      fs::symlink_status(directory() / good_member(1).name)));
}

}  // namespace
}  // namespace logpjit::cache
