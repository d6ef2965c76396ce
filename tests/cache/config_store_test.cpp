// The tuned configs on disk.
#include "cache/config_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include "cache/config_line.hpp"
#include "logpjit/error.hpp"
#include "tests/support/cache/samples.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::cache {
namespace {

using logpjit::testing::names_in;
using logpjit::testing::TemporaryDirectory;
using logpjit::testing::WarningLog;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

ConfigRecord record(const std::string& spec, double time = 12.5,
                    const std::string& sms = "132") {
  return {.spec = spec,
          .device = {{"cc", "9.0"}, {"sms", sms}},
          .config = "block=512,unroll=4",
          .time_us = time,
          .spread = 0.01,
          .measured_with = {{"driver", "580.159"}, {"name", "NVIDIA H200"}}};
}

class ConfigStoreTest : public ::testing::Test {
 protected:
  ConfigStore make(Role role = Role::kUser) {
    return ConfigStore(home_.path() / "cache", role, log_.sink());
  }
  fs::path file() { return home_.path() / "cache/configs.jsonl"; }
  std::string text() {
    std::ostringstream all;
    all << std::ifstream(file()).rdbuf();
    return all.str();
  }
  void add_raw(const std::string& line) {
    std::ofstream(file(), std::ios::app) << line;
  }
  TemporaryDirectory home_;
  WarningLog log_;
};

TEST_F(ConfigStoreTest, RoundTrip) {
  EXPECT_THAT(make().load(), IsEmpty());
  EXPECT_FALSE(fs::exists(home_.path() / "cache"));
  const ConfigRecord odd = record("spec \"with\"\n\\ odd \xc3\xa9 bytes", 0.1);
  EXPECT_TRUE(make().append({record("a"), odd}));
  EXPECT_TRUE(make().append({record("b", 1e-7)}));
  EXPECT_THAT(make().load(), ElementsAre(record("a"), odd, record("b", 1e-7)));
  EXPECT_THAT(log_.lines(), IsEmpty());
  const std::string all = text();
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 3);
}

TEST_F(ConfigStoreTest, FormatIsFrozen) {
  EXPECT_EQ(format_line(record("op=logp")),
            R"({"config":"block=512,unroll=4","device":{"cc":"9.0",)"
            R"("sms":"132"},"measured_with":{"driver":"580.159",)"
            R"("name":"NVIDIA H200"},"spec":"op=logp","spread":0.01,)"
            R"("time_us":12.5,"v":1})"
            "\n");
}

TEST_F(ConfigStoreTest, LastOfASpecAndDeviceWins) {
  make().append({record("a", 1), record("b", 2), record("a", 3, "78")});
  make().append({record("a", 4)});
  EXPECT_THAT(make().load(), ElementsAre(record("b", 2), record("a", 3, "78"),
                                         record("a", 4)));
}

TEST_F(ConfigStoreTest, DamagedLinesAreSkippedWithTheirPlace) {
  make().append({record("a")});
  add_raw("not json\n");
  add_raw("{}\n[]\nnull\n3\n\"x\"\n\n");
  add_raw(R"({"v":1,"spec":1,"device":{},"config":"","time_us":1,)"
          R"("spread":0,"measured_with":{}})"
          "\n");
  add_raw(R"({"v":1,"spec":"s","device":{"a":[]},"config":"","time_us":1,)"
          R"("spread":0,"measured_with":{}})"
          "\n");
  add_raw(R"({"v":1,"spec":"s","device":{},"config":"","time_us":-1,)"
          R"("spread":0,"measured_with":{}})"
          "\n");
  add_raw(std::string(3, '\0') + "\n" + std::string(100'000, '[') + "\n");
  make().append({record("b")});
  EXPECT_THAT(make().load(), ElementsAre(record("a"), record("b")));
  EXPECT_THAT(log_.lines(), ElementsAre(HasSubstr(file().string() + ":2: ")));
  EXPECT_THAT(log_.lines()[0], HasSubstr("11 such lines"));
}

TEST_F(ConfigStoreTest, ALineCutShortCostsItselfOnly) {
  make().append({record("a"), record("b")});
  fs::resize_file(file(), fs::file_size(file()) - 10);
  EXPECT_THAT(make().load(), ElementsAre(record("a")));
  EXPECT_THAT(log_.lines(), IsEmpty());  // perhaps still being written
  make().append({record("c")});
  EXPECT_THAT(make().load(), ElementsAre(record("a"), record("c")));
  EXPECT_THAT(log_.lines(), ElementsAre(HasSubstr(":2: ")));
}

TEST_F(ConfigStoreTest, LaterFormatsAreKeptAndNotUsed) {
  make().append({record("a")});
  add_raw("{\"v\":2,\"new\":true}\n");
  EXPECT_THAT(make().load(), ElementsAre(record("a")));
  EXPECT_TRUE(make().compact());
  EXPECT_THAT(text(), HasSubstr("{\"v\":2,\"new\":true}\n"));
  EXPECT_THAT(log_.lines(), IsEmpty());
}

TEST_F(ConfigStoreTest, UnknownFieldsOfThisFormatAreIgnoredAndKept) {
  make().append({record("a")});
  std::string line = format_line(record("b"));
  line.insert(1, "\"extra\":1,");
  add_raw(line);
  EXPECT_THAT(make().load(), ElementsAre(record("a"), record("b")));
  make().compact();
  EXPECT_THAT(text(), HasSubstr("\"extra\":1"));
}

TEST_F(ConfigStoreTest, CompactDropsWhatIsSuperseded) {
  for (int i = 0; i < 20; ++i) make().append({record("a", i), record("b", i)});
  add_raw("rubbish\n");
  EXPECT_TRUE(make().compact());
  EXPECT_EQ(text(),
            format_line(record("a", 19)) + format_line(record("b", 19)));
  EXPECT_FALSE(ConfigStore({}, Role::kUser, {}).compact());
}

TEST_F(ConfigStoreTest, RefusesWhatIsNoMeasurement) {
  for (double bad :
       {std::nan(""), -1.0, std::numeric_limits<double>::infinity()}) {
    EXPECT_THROW(make().append({record("a", bad)}), Error);
  }
  EXPECT_FALSE(fs::exists(file()));
}

TEST_F(ConfigStoreTest, WithoutADirectoryItIsEmpty) {
  ConfigStore store({}, Role::kUser, log_.sink());
  EXPECT_FALSE(store.append({record("a")}));
  EXPECT_THAT(store.load(), IsEmpty());
  EXPECT_THAT(log_.lines(), IsEmpty());
}

TEST_F(ConfigStoreTest, AReadOnlyOneIsNeverWritten) {
  make().append({record("a")});
  ConfigStore sealed = make(Role::kReadOnly);
  EXPECT_THAT(sealed.load(), ElementsAre(record("a")));
  EXPECT_FALSE(sealed.append({record("b")}));
  EXPECT_FALSE(sealed.compact());
  EXPECT_THAT(make().load(), ElementsAre(record("a")));
}

TEST_F(ConfigStoreTest, UntrustedFilesAreNotRead) {
  make().append({record("a")});
  chmod(file().c_str(), 0666);
  EXPECT_THAT(make().load(), IsEmpty());
  EXPECT_THAT(log_.lines(), ElementsAre(HasSubstr("other users may write")));
  chmod(file().c_str(), 0644);
  const fs::path real = home_.path() / "real";
  fs::rename(file(), real);
  fs::create_symlink(real, file());
  EXPECT_THAT(make().load(), IsEmpty());
  EXPECT_FALSE(make().append({record("b")}));
  EXPECT_EQ(fs::file_size(real), format_line(record("a")).size());
  fs::remove(file());
  ASSERT_EQ(mkfifo(file().c_str(), 0600), 0);
  EXPECT_THAT(make().load(), IsEmpty());
  EXPECT_FALSE(make().append({record("b")}));
}

}  // namespace
}  // namespace logpjit::cache
