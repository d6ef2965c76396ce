// The NCCL group over a library that behaves like NCCL, and misbehaves.
#include <gmock/gmock.h>

#include <cstdint>
#include <numeric>
#include <thread>

#include "logpjit/collective.hpp"
#include "logpjit/error.hpp"
#include "runtime/engine.hpp"

namespace logpjit {
namespace {

using testing::HasSubstr;

Options options() {
  Options made;
  made.device = "cpu";
  made.nccl_library = LOGPJIT_FAKE_NCCL;
  return made;
}

Runtime& runtime() {
  static Runtime made(options());
  return made;
}

template <typename Work>
std::vector<std::string> on_ranks(int ranks, Work&& work) {
  const NcclId id = make_nccl_id(options());
  std::vector<std::string> messages(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto group = join_nccl(runtime(), id, rank, ranks);
        work(*group);
      } catch (const Error& error) {
        messages[static_cast<std::size_t>(rank)] =
            std::string(name(error.code())) + ": " + error.message();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return messages;
}

TEST(Nccl, GathersInRankOrderAndSums) {
  const auto messages = on_ranks(4, [](Collective& group) {
    std::vector<std::uint32_t> all(8, 0);
    const std::size_t mine = static_cast<std::size_t>(group.rank()) * 2;
    all[mine] = static_cast<std::uint32_t>(group.rank());
    all[mine + 1] = 7;
    group.all_gather(&all[mine], all.data(), 8, nullptr);
    EXPECT_THAT(all, testing::ElementsAre(0, 7, 1, 7, 2, 7, 3, 7));
    std::uint32_t word = group.rank() == 2 ? 0xff800000u : 0;
    group.sum_words(&word, 1, nullptr);
    EXPECT_EQ(word, 0xff800000u);
    group.poll();
  });
  EXPECT_THAT(messages, testing::Each(""));
}

TEST(Nccl, SaysItsVersion) { EXPECT_EQ(nccl_version(options()), "2.27.5"); }

TEST(Nccl, FailuresNameTheCallOnEveryRank) {
  const auto messages = on_ranks(5, [](Collective& group) {
    std::uint32_t words[5] = {};
    group.all_gather(words, words, 4, nullptr);
  });
  EXPECT_THAT(messages,
              testing::Each(HasSubstr("driver: ncclAllGather failed: internal "
                                      "error")));
}

TEST(Nccl, LaterFailuresComeOutWhenAsked) {
  const auto messages = on_ranks(6, [](Collective& group) { group.poll(); });
  EXPECT_THAT(messages, testing::Each(HasSubstr("remote process exited")));
}

TEST(Nccl, AnAbortedGroupSaysWhy) {
  const auto messages = on_ranks(2, [](Collective& group) {
    group.abort("rank 1 was too late");
    group.poll();
  });
  EXPECT_THAT(messages, testing::Each(HasSubstr("rank 1 was too late")));
}

TEST(Nccl, NobodyComes) {
  const NcclId id = make_nccl_id(options());
  try {
    join_nccl(runtime(), id, 0, 2, 0.1);
    FAIL() << "joined alone";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_THAT(error.message(), HasSubstr("rank 0 of 2 waited 0.1 s"));
  }
}

TEST(Nccl, MisuseNamesTheArgument) {
  EXPECT_THROW(join_nccl(runtime(), {}, 2, 2), Error);
  EXPECT_THROW(use_nccl(runtime(), nullptr), Error);
}

TEST(Nccl, AbsenceSaysWhatToSet) {
  Options none = options();
  none.nccl_library = "/nonexistent/libnccl.so.2";
  try {
    make_nccl_id(none);
    FAIL() << "opened nothing";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(), HasSubstr("LOGPJIT_NCCL"));
  }
}

}  // namespace
}  // namespace logpjit
