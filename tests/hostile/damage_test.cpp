// Damaged, replaced and planted entries: a miss, one warning, the right image.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <random>

#include "cache/digest.hpp"
#include "cache/entry_name.hpp"
#include "cache/image_cache.hpp"
#include "tests/support/cache/samples.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::cache {
namespace {

using logpjit::testing::bytes_of;
using logpjit::testing::memory_directory;
using logpjit::testing::names_in;
using logpjit::testing::sample_image;
using logpjit::testing::sample_key;
using logpjit::testing::TemporaryDirectory;
using logpjit::testing::WarningLog;
using logpjit::testing::write_bytes;
using ::testing::SizeIs;

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

class DamageTest : public ::testing::Test {
 protected:
  DamageTest() {
    std::vector<std::string> ignored;
    find(1, ignored);
    good_ = bytes_of(entry());
  }

  fs::path directory() { return home_.path() / "cache"; }
  fs::path entry() { return directory() / entry_name(sample_key(1)); }

  Origin find(int number, std::vector<std::string>& warnings) {
    WarningLog log;
    CacheOptions options;
    options.directory = directory();
    options.warn = log.sink();
    ImageCache cache(options);
    const Found found = cache.find_or_compile(
        sample_key(number), [&] { return sample_image(number); });
    EXPECT_EQ(*found.image, sample_image(number));
    warnings = log.lines();
    return found.origin;
  }

  /// A miss with one warning, and a hit the next time.
  void expect_replaced(const std::string& what) {
    SCOPED_TRACE(what);
    std::vector<std::string> warnings;
    EXPECT_EQ(find(1, warnings), Origin::kCompiled);
    EXPECT_THAT(warnings, SizeIs(1));
    EXPECT_EQ(find(1, warnings), Origin::kDisk);
    EXPECT_THAT(warnings, SizeIs(0));
    struct stat status {};
    EXPECT_EQ(lstat(entry().c_str(), &status), 0);
    EXPECT_TRUE(S_ISREG(status.st_mode));
  }

  TemporaryDirectory home_{memory_directory()};
  Bytes good_;
};

TEST_F(DamageTest, EveryKindOfTruncation) {
  for (std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{79}, std::size_t{80},
        good_.size() / 2, good_.size() - 16, good_.size() - 1}) {
    Bytes cut = good_;
    cut.resize(size);
    write_bytes(entry(), cut);
    expect_replaced(fmt::format("{} bytes", size));
  }
}

TEST_F(DamageTest, FourMoreBytes) {
  Bytes longer = good_;
  longer.resize(good_.size() + 4);
  write_bytes(entry(), longer);
  expect_replaced("longer");
}

TEST_F(DamageTest, TwoHundredFlippedBits) {
  std::mt19937 random(12);
  for (int round = 0; round < 200; ++round) {
    Bytes flipped = good_;
    const std::size_t bit = random() % (8 * flipped.size());
    flipped[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    write_bytes(entry(), flipped);
    expect_replaced(fmt::format("bit {}", bit));
  }
}

/// Truncated, flipped, extended or with two parts swapped.
Bytes mutated(Bytes bytes, std::mt19937& random) {
  const auto anywhere = [&] { return random() % bytes.size(); };
  switch (random() % 4) {
    case 0:
      bytes.resize(anywhere());
      break;
    case 1:
      for (auto i = random() % 8 + 1; i > 0; --i) {
        bytes[anywhere()] ^= static_cast<std::byte>(random() % 255 + 1);
      }
      break;
    case 2:
      for (auto i = random() % 5000 + 1; i > 0; --i) {
        bytes.push_back(static_cast<std::byte>(random()));
      }
      break;
    default: {
      const std::size_t size = random() % (bytes.size() / 2) + 1;
      std::swap_ranges(bytes.begin(), bytes.begin() + size, bytes.end() - size);
    }
  }
  return bytes;
}

TEST_F(DamageTest, TwoThousandRandomMutations) {
  std::mt19937 random(1776);
  for (int round = 0; round < 2000; ++round) {
    const Bytes bad = mutated(good_, random);
    if (bad == good_) continue;
    write_bytes(entry(), bad);
    std::vector<std::string> warnings;
    EXPECT_EQ(find(1, warnings), Origin::kCompiled) << round;
    EXPECT_THAT(warnings, SizeIs(1)) << round;
  }
  EXPECT_LE(names_in(directory(), ".bad").size(), 16u);
}

TEST_F(DamageTest, AnotherEntryUnderItsName) {
  std::vector<std::string> warnings;
  find(2, warnings);
  write_bytes(entry(), bytes_of(directory() / entry_name(sample_key(2))));
  expect_replaced("swapped");
}

TEST_F(DamageTest, Folders) {
  fs::remove(entry());
  fs::create_directory(entry());
  expect_replaced("empty folder");
  fs::remove(entry());
  fs::create_directories(entry() / "with" / "content");
  expect_replaced("full folder");
}

TEST_F(DamageTest, AFullFolderInTheWayOfSettingAside) {
  fs::create_directories(entry().string() + ".bad/with/content");
  write_bytes(entry(), {});
  expect_replaced("full folder as .bad");
}

TEST_F(DamageTest, AFifoNeverBlocks) {
  fs::remove(entry());
  ASSERT_EQ(mkfifo(entry().c_str(), 0600), 0);
  expect_replaced("fifo");
}

TEST_F(DamageTest, ASocket) {
  fs::remove(entry());
  const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "/proc/self/cwd/" + entry().filename().string();
  const fs::path before = fs::current_path();
  fs::current_path(directory());
  name.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(file, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
            0);
  fs::current_path(before);
  expect_replaced("socket");
  close(file);
}

TEST_F(DamageTest, LinksAreReplacedNotFollowed) {
  const fs::path victim = home_.path() / "victim";
  write_bytes(victim, good_);
  fs::remove(entry());
  fs::create_symlink(victim, entry());
  expect_replaced("link to a good entry");
  EXPECT_EQ(bytes_of(victim), good_);
  fs::remove(entry());
  fs::create_symlink(home_.path() / "nowhere", entry());
  expect_replaced("dangling link");
  EXPECT_FALSE(fs::exists(home_.path() / "nowhere"));
  fs::remove(entry());
  fs::create_symlink(entry(), entry());
  expect_replaced("loop");
}

TEST_F(DamageTest, FilesThatOthersMayWriteAreNotRead) {
  for (mode_t mode : {0666, 0664, 0602}) {
    chmod(entry().c_str(), mode);
    expect_replaced(fmt::format("mode {:o}", mode));
  }
}

TEST_F(DamageTest, FilesOfOthersAreNotRead) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(chown(entry().c_str(), 12345, 12345), 0);
  expect_replaced("foreign owner");
}

TEST_F(DamageTest, ALaterFormatIsLeftUntilReplaced) {
  Bytes later = good_;
  later[8] = std::byte{9};
  const auto sealed = digest(std::span(later).first(later.size() - 16));
  std::copy(sealed.begin(), sealed.end(), later.end() - 16);
  write_bytes(entry(), later);
  std::vector<std::string> warnings;
  EXPECT_EQ(find(1, warnings), Origin::kCompiled);
  EXPECT_THAT(warnings, SizeIs(0));
  EXPECT_THAT(names_in(directory(), ".bad"), SizeIs(0));
  EXPECT_EQ(find(1, warnings), Origin::kDisk);
}

TEST_F(DamageTest, AHugeSparseFileIsNotRead) {
  fs::resize_file(entry(), std::uintmax_t{1} << 36);
  expect_replaced("64 GB");
}

TEST_F(DamageTest, AnImageOfAnyContentIsAHitTheSecondTime) {
  for (int number = 100; number < 120; ++number) {
    std::vector<std::string> warnings;
    EXPECT_EQ(find(number, warnings), Origin::kCompiled);
    EXPECT_EQ(find(number, warnings), Origin::kDisk);
  }
}

}  // namespace
}  // namespace logpjit::cache
