// Many processes, one key; killed and stopped ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "cache/entry_file.hpp"
#include "cache/entry_name.hpp"
#include "cache/file_lock.hpp"
#include "tests/support/cache/samples.hpp"
#include "tests/support/cache/worker_process.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::cache {
namespace {

using logpjit::testing::bytes_of;
using logpjit::testing::names_in;
using logpjit::testing::sample_key;
using logpjit::testing::TemporaryDirectory;
using logpjit::testing::WorkerProcess;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

class ProcessesTest : public ::testing::Test {
 protected:
  fs::path directory() { return home_.path() / "cache"; }
  fs::path counter() { return home_.path() / "compiles"; }
  std::size_t compiles() { return bytes_of(counter()).size(); }

  /// Until the worker that was asked for key 1 is compiling.
  void wait_for_lock_holder() {
    LockFile probe(real_file_system(), directory() / "lock");
    const off_t offset = lock_offset(sample_key(1).hash());
    while (probe.acquire(offset, {}).outcome != LockFile::Outcome::kTimedOut) {
      usleep(2000);
    }
  }

  TemporaryDirectory home_;
};

TEST_F(ProcessesTest, SixteenColdStartsCompileOnce) {
  constexpr int kProcesses = 16;
  constexpr int kRounds = 50;
  std::vector<WorkerProcess> workers;
  for (int i = 0; i < kProcesses; ++i) {
    workers.emplace_back(std::vector<std::string>{"--counter", counter()});
  }
  for (int round = 0; round < kRounds; ++round) {
    const fs::path empty = home_.path() / fmt::format("round-{}", round);
    for (auto& worker : workers) worker.ask(round, 2, empty);
    int compiled = 0;
    for (auto& worker : workers) {
      const std::string answer = worker.answer();
      EXPECT_TRUE(answer == "compiled right" || answer == "disk right")
          << answer;
      compiled += answer == "compiled right";
    }
    EXPECT_EQ(compiled, 1) << "round " << round;
    EXPECT_EQ(compiles(), static_cast<std::size_t>(round + 1));
    EXPECT_EQ(names_in(empty, "").size(), 2u);  // the entry and the lock
    fs::remove_all(empty);
  }
  for (auto& worker : workers) EXPECT_EQ(worker.finish(), 0);
}

TEST_F(ProcessesTest, AKilledHolderDelaysNobody) {
  WorkerProcess victim;
  victim.ask(1, 60'000, directory());
  wait_for_lock_holder();
  victim.signal(SIGKILL);
  victim.finish();
  const auto begin = Clock::now();
  EXPECT_EQ(WorkerProcess().find(1, directory()), "compiled right");
  EXPECT_LT(Seconds(Clock::now() - begin).count(), 5);
}

TEST_F(ProcessesTest, AHolderKilledWhileOthersWaitLetsOneOfThemIn) {
  WorkerProcess victim;
  victim.ask(1, 60'000, directory());
  wait_for_lock_holder();
  WorkerProcess a({"--counter", counter()});
  WorkerProcess b({"--counter", counter()});
  a.ask(1, 50, directory());
  b.ask(1, 50, directory());
  usleep(100'000);
  EXPECT_EQ(compiles(), 0u);
  victim.signal(SIGKILL);
  victim.finish();
  EXPECT_THAT(a.answer() + b.answer(),
              AllOf(HasSubstr("compiled right"), HasSubstr("disk right")));
  EXPECT_EQ(compiles(), 1u);
}

TEST_F(ProcessesTest, AStoppedHolderIsNamedAndPassedBy) {
  WorkerProcess stopped;
  stopped.ask(1, 60'000, directory());
  wait_for_lock_holder();
  stopped.signal(SIGSTOP);
  WorkerProcess other({"--timeout", "0.3"});
  const std::string answer = other.find(1, directory());
  EXPECT_THAT(answer, AllOf(HasSubstr("compiled right | "),
                            HasSubstr((directory() / "lock").string()),
                            HasSubstr(fmt::format("process {} (cache_worker)",
                                                  stopped.pid()))));
  EXPECT_EQ(other.find(1, directory()), "disk right");
}

TEST_F(ProcessesTest, AnotherKeyIsNotHeldUp) {
  WorkerProcess slow;
  slow.ask(1, 60'000, directory());
  wait_for_lock_holder();
  const auto begin = Clock::now();
  EXPECT_EQ(WorkerProcess().find(2, directory()), "compiled right");
  EXPECT_LT(Seconds(Clock::now() - begin).count(), 5);
}

TEST_F(ProcessesTest, ManyKeysAtOnceEndWithOneEntryEach) {
  constexpr int kKeys = 20;
  std::vector<WorkerProcess> workers;
  for (int i = 0; i < 8; ++i) {
    workers.emplace_back(std::vector<std::string>{"--counter", counter()});
  }
  for (int key = 0; key < kKeys; ++key) {
    for (std::size_t i = 0; i < workers.size(); ++i) {
      workers[i].ask((key + static_cast<int>(i)) % kKeys, 1, directory());
    }
  }
  for (int key = 0; key < kKeys; ++key) {
    for (auto& worker : workers)
      EXPECT_THAT(worker.answer(), HasSubstr("right"));
  }
  EXPECT_EQ(compiles(), static_cast<std::size_t>(kKeys));
  EXPECT_EQ(names_in(directory(), ".lpj").size(),
            static_cast<std::size_t>(kKeys));
  EXPECT_EQ(names_in(directory(), "").size(), kKeys + 1u);
}

class KillPointTest : public ProcessesTest,
                      public ::testing::WithParamInterface<const char*> {};

TEST_P(KillPointTest, LeavesNothingDamagedUnderTheEntrysName) {
  WorkerProcess victim({"--kill", GetParam()});
  EXPECT_EQ(victim.find(1, directory()), "");
  const int status = victim.finish();
  ASSERT_TRUE(WIFSIGNALED(status));
  const fs::path entry = directory() / entry_name(sample_key(1));
  const auto state = read_entry_file(real_file_system(), entry).state;
  EXPECT_TRUE(state == FileRead::State::kAbsent ||
              state == FileRead::State::kGood);
  WorkerProcess next({"--counter", counter()});
  const std::string answer = next.find(1, directory());
  const bool published = std::string_view(GetParam()) == "after_rename";
  EXPECT_EQ(answer, published ? "disk right" : "compiled right");
  EXPECT_EQ(compiles(), published ? 0u : 1u);
  EXPECT_EQ(next.find(1, directory()), "disk right");
}

INSTANTIATE_TEST_SUITE_P(Publish, KillPointTest,
                         ::testing::Values("after_create", "mid_write",
                                           "before_sync", "before_rename",
                                           "after_rename"),
                         [](const auto& each) {
                           return std::string(each.param);
                         });

}  // namespace
}  // namespace logpjit::cache
