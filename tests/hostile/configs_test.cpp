// Tuned configs under concurrent writers, full disks and damage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <thread>

#include "cache/config_store.hpp"
#include "tests/support/cache/fault_file_system.hpp"
#include "tests/support/cache/samples.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::cache {
namespace {

using logpjit::testing::bytes_of;
using logpjit::testing::FaultFileSystem;
using logpjit::testing::memory_directory;
using logpjit::testing::Operation;
using logpjit::testing::TemporaryDirectory;
using logpjit::testing::WarningLog;
using logpjit::testing::write_bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ConfigRecord record(const std::string& spec) {
  return {.spec = spec,
          .device = {{"cc", "9.0"}},
          .config = "block=512",
          .time_us = 1,
          .spread = 0,
          .measured_with = {}};
}

class HostileConfigsTest : public ::testing::Test {
 protected:
  ConfigStore make() {
    return ConfigStore(directory(), Role::kUser, log_.sink(), &files_);
  }
  std::filesystem::path directory() { return home_.path() / "cache"; }
  std::filesystem::path file() { return directory() / "configs.jsonl"; }

  TemporaryDirectory home_{memory_directory()};
  FaultFileSystem files_;
  WarningLog log_;
};

TEST_F(HostileConfigsTest, ProcessesThreadsAndCompactionLoseNoRecord) {
  constexpr int kProcesses = 8;
  constexpr int kRecords = 40;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    bool good = true;
    for (int i = 0; i < kRecords; ++i) {
      ConfigStore store(directory(), Role::kUser, {});
      good &= store.append({record(fmt::format("process {} {}", p, i))});
      if (i % 10 == 9) good &= store.compact();
    }
    _exit(good ? 0 : 1);
  }
  ConfigStore shared = make();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRecords; ++i) {
        EXPECT_TRUE(shared.append({record(fmt::format("thread {} {}", t, i))}));
        if (i % 10 == 9) {
          EXPECT_TRUE(shared.compact());
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_THAT(make().load(), SizeIs((kProcesses + 4) * kRecords));
  EXPECT_THAT(log_.lines(), IsEmpty());
}

TEST_F(HostileConfigsTest, AWriteCutShortIsTakenBack) {
  make().append({record("a")});
  const auto before = bytes_of(file());
  files_.add({.operation = Operation::kWrite, .at_most = 7, .times = 1});
  files_.add({.operation = Operation::kWrite, .error = ENOSPC});
  EXPECT_FALSE(make().append({record("b")}));
  EXPECT_EQ(bytes_of(file()), before);
  EXPECT_THAT(log_.lines(), ElementsAre(HasSubstr("No space left")));
}

TEST_F(HostileConfigsTest, ACutWriteWithoutLocksCostsItselfOnly) {
  make().append({record("a")});
  files_.add({.operation = Operation::kLock, .error = ENOLCK});
  files_.add({.operation = Operation::kWrite, .at_most = 7, .times = 1});
  files_.add({.operation = Operation::kWrite, .error = ENOSPC, .times = 1});
  EXPECT_FALSE(make().append({record("b")}));
  EXPECT_TRUE(make().append({record("c")}));
  EXPECT_FALSE(make().compact());
  EXPECT_THAT(make().load(), ElementsAre(record("a"), record("c")));
}

TEST_F(HostileConfigsTest, AFailedCompactionChangesNothing) {
  make().append({record("a"), record("a")});
  const auto before = bytes_of(file());
  for (Operation operation : {Operation::kWrite, Operation::kSync,
                              Operation::kRename, Operation::kOpen}) {
    files_.clear();
    files_.add({.operation = operation,
                .path_part = operation == Operation::kRename ? "" : ".tmp-",
                .error = EIO});
    EXPECT_FALSE(make().compact());
    EXPECT_EQ(bytes_of(file()), before);
  }
}

TEST_F(HostileConfigsTest, ErrorsOfAReadAreAWarning) {
  make().append({record("a")});
  files_.add({.operation = Operation::kRead, .error = EIO});
  EXPECT_THAT(make().load(), IsEmpty());
  EXPECT_THAT(log_.lines(), SizeIs(1));
  files_.clear();
  EXPECT_THAT(make().load(), SizeIs(1));
}

TEST_F(HostileConfigsTest, RandomDamageNeverThrowsAndSparesOtherLines) {
  make().append({record("a"), record("b"), record("c")});
  const auto good = bytes_of(file());
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    auto bad = good;
    bad[random() % bad.size()] = static_cast<std::byte>(random());
    write_bytes(file(), bad);
    const auto loaded = make().load();
    EXPECT_GE(loaded.size(), 1u);
    EXPECT_LE(loaded.size(), 4u);
  }
}

}  // namespace
}  // namespace logpjit::cache
