// Export and import of good caches.
#include "cache/bundle.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "cache/entry_name.hpp"
#include "cache/image_cache.hpp"
#include "logpjit/error.hpp"
#include "tests/support/cache/fault_file_system.hpp"
#include "tests/support/cache/samples.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::cache {
namespace {

using logpjit::testing::bytes_of;
using logpjit::testing::FaultFileSystem;
using logpjit::testing::names_in;
using logpjit::testing::Operation;
using logpjit::testing::sample_image;
using logpjit::testing::sample_key;
using logpjit::testing::TemporaryDirectory;
using logpjit::testing::write_bytes;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

class BundleTest : public ::testing::Test {
 protected:
  CacheOptions at(const std::string& name) {
    CacheOptions options;
    options.directory = home_.path() / name;
    return options;
  }
  void fill(const std::string& name, int begin, int end) {
    ImageCache cache(at(name));
    for (int i = begin; i < end; ++i) {
      cache.find_or_compile(sample_key(i), [&] { return sample_image(i); });
    }
  }
  fs::path file() { return home_.path() / "export"; }
  ExportResult exported(const std::string& name) {
    return export_entries(files_, home_.path() / name, file());
  }
  ImportResult imported(const std::string& name) {
    return import_entries(files_, file(), home_.path() / name);
  }

  TemporaryDirectory home_;
  FaultFileSystem files_;
};

TEST_F(BundleTest, CarriesEntriesToAnotherPlace) {
  fill("from", 0, 5);
  const ExportResult out = exported("from");
  EXPECT_EQ(out.entries, 5u);
  EXPECT_EQ(out.bytes, fs::file_size(file()));
  const ImportResult in = imported("to/deep");
  EXPECT_EQ(in.added, 5u);
  EXPECT_EQ(in.present, 0u);
  ImageCache cache(at("to/deep"));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(*cache.find(sample_key(i))->image, sample_image(i));
    const std::string name = entry_name(sample_key(i));
    EXPECT_EQ(bytes_of(home_.path() / "to/deep" / name),
              bytes_of(home_.path() / "from" / name));
  }
}

TEST_F(BundleTest, AddsOnlyWhatIsMissingOrDamaged) {
  fill("from", 0, 4);
  exported("from");
  fill("to", 0, 2);
  write_bytes(home_.path() / "to" / entry_name(sample_key(1)), {});
  const ImportResult in = imported("to");
  EXPECT_EQ(in.added, 3u);
  EXPECT_EQ(in.present, 1u);
  EXPECT_EQ(imported("to").present, 4u);
}

TEST_F(BundleTest, DamagedEntriesStayBehind) {
  fill("from", 0, 3);
  write_bytes(home_.path() / "from" / entry_name(sample_key(1)), {});
  EXPECT_EQ(exported("from").entries, 2u);
  EXPECT_EQ(imported("to").added, 2u);
}

TEST_F(BundleTest, AnEmptyCacheMakesAnEmptyExport) {
  EXPECT_EQ(exported("absent").entries, 0u);
  EXPECT_EQ(imported("to").added, 0u);
}

TEST_F(BundleTest, AnOldExportIsReplacedWhole) {
  write_bytes(file(), std::vector<std::byte>(100'000));
  fill("from", 0, 1);
  exported("from");
  EXPECT_EQ(imported("to").added, 1u);
}

TEST_F(BundleTest, AFailedExportLeavesTheOldOneAndNothingElse) {
  fill("from", 0, 3);
  write_bytes(file(), std::vector<std::byte>(10));
  files_.add({.operation = Operation::kWrite,
              .path_part = ".tmp-",
              .error = ENOSPC,
              .skip = 2});
  try {
    exported("from");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_THAT(error.message(), HasSubstr("No space left"));
  }
  EXPECT_EQ(bytes_of(file()).size(), 10u);
  EXPECT_EQ(names_in(home_.path(), "").size(), 2u);
}

TEST_F(BundleTest, SpecialTargetsAreRefused) {
  fill("from", 0, 1);
  for (const fs::path& target :
       {fs::path("/dev/null"), home_.path() / "from", home_.path() / "x/"}) {
    EXPECT_THROW(export_entries(files_, home_.path() / "from", target), Error)
        << target;
  }
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THROW(
      export_entries(files_, home_.path() / "from", "/nonexistent/export"),
      Error);
}

TEST_F(BundleTest, ADiskThatFillsDuringImportKeepsWhatIsGood) {
  fill("from", 0, 4);
  exported("from");
  files_.add({.operation = Operation::kWrite,
              .path_part = ".tmp-",
              .error = ENOSPC,
              .skip = 2});
  try {
    imported("to");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_THAT(error.message(), HasSubstr("2 entries were imported before"));
  }
  files_.clear();
  EXPECT_EQ(imported("to").present, 2u);
}

TEST_F(BundleTest, AFileThatChangesBetweenTheTwoPassesIsNotTrusted) {
  fill("from", 0, 2);
  exported("from");
  const auto before = bytes_of(file());
  // The second pass opens nothing anew, so change what it reads in place.
  class Changing : public FaultFileSystem {
   public:
    explicit Changing(fs::path path) : path_(std::move(path)) {}
    int make_directory(const std::string& path, mode_t mode) override {
      auto bytes = bytes_of(path_);
      for (auto& byte : bytes) byte ^= std::byte{1};
      std::fstream out(path_, std::ios::in | std::ios::out | std::ios::binary);
      out.write(reinterpret_cast<const char*>(bytes.data()),
                static_cast<std::streamsize>(bytes.size()));
      return FaultFileSystem::make_directory(path, mode);
    }

   private:
    fs::path path_;
  };
  Changing files(file());
  EXPECT_THROW(import_entries(files, file(), home_.path() / "to"), Error);
  EXPECT_TRUE(names_in(home_.path() / "to", ".lpj").empty());
}

}  // namespace
}  // namespace logpjit::cache
