// Threads as ranks: data, disagreement, time-outs, ranks that leave.
#include <gmock/gmock.h>

#include <cstdint>
#include <thread>

#include "logpjit/collective.hpp"
#include "logpjit/error.hpp"

namespace logpjit {
namespace {

using testing::Each;
using testing::HasSubstr;

template <typename Work>
std::vector<std::string> on_ranks(int ranks, double timeout_s, Work&& work) {
  auto ends = make_threads_group(ranks, timeout_s);
  std::vector<std::string> messages(ends.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const std::unique_ptr<Collective> end = std::move(ends[rank]);
      try {
        work(*end);
      } catch (const Error& error) {
        messages[rank] = error.message();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return messages;
}

TEST(ThreadsGroup, GathersManyTimes) {
  const auto messages = on_ranks(8, 60, [](Collective& group) {
    for (std::uint32_t turn = 0; turn < 200; ++turn) {
      std::vector<std::uint32_t> all(8, 0xdead);
      const std::uint32_t mine =
          turn * 10 + static_cast<std::uint32_t>(group.rank());
      group.all_gather(&mine, all.data(), sizeof mine, nullptr);
      for (std::uint32_t rank = 0; rank < 8; ++rank) {
        ASSERT_EQ(all[rank], turn * 10 + rank);
      }
    }
  });
  EXPECT_THAT(messages, Each(""));
}

TEST(ThreadsGroup, SumsWordsInPlace) {
  const auto messages = on_ranks(3, 60, [](Collective& group) {
    std::vector<std::uint32_t> words(5, 0);
    words[static_cast<std::size_t>(group.rank())] = 0x80000000u;
    words[4] = 1;
    group.sum_words(words.data(), words.size(), nullptr);
    EXPECT_THAT(words, testing::ElementsAre(0x80000000u, 0x80000000u,
                                            0x80000000u, 0, 3));
  });
  EXPECT_THAT(messages, Each(""));
}

TEST(ThreadsGroup, DifferentSizesAreRefusedOnAllRanks) {
  const auto messages = on_ranks(3, 60, [](Collective& group) {
    char data[64] = {};
    group.all_gather(data, data, group.rank() == 1 ? 8 : 4, nullptr);
  });
  EXPECT_THAT(messages, Each(HasSubstr("rank 0 brought 4 bytes, rank 1 8")));
}

TEST(ThreadsGroup, WaitingHasAnEnd) {
  const auto messages = on_ranks(2, 0.05, [](Collective& group) {
    if (group.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
    char data[8] = {};
    group.all_gather(data, data, 4, nullptr);
  });
  EXPECT_THAT(messages, Each(HasSubstr("waited 0.05 s for the other ranks")));
}

TEST(ThreadsGroup, LeavingWakesTheOthers) {
  const auto messages = on_ranks(3, 60, [](Collective& group) {
    if (group.rank() == 2) return;
    char data[16] = {};
    group.all_gather(data, data, 4, nullptr);
  });
  EXPECT_THAT(messages[0], HasSubstr("rank 2 has left"));
  EXPECT_THAT(messages[1], HasSubstr("rank 2 has left"));
}

TEST(ThreadsGroup, NeedsARank) { EXPECT_THROW(make_threads_group(0), Error); }

}  // namespace
}  // namespace logpjit
