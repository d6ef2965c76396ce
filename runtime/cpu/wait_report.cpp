// Turns waits into sentences for error messages.
#include "runtime/cpu/wait_report.hpp"

#include <fmt/format.h>

#include <iterator>

#include "runtime/cpu/group.hpp"

namespace logpjit::runtime {
namespace {

constexpr int kMaxPhrases = 8;

bool alike(const Fiber& a, const Fiber& b) {
  return a.block == b.block && a.returned == b.returned && a.wait == b.wait;
}

std::string describe_state(const Fiber& fiber, bool several) {
  if (fiber.returned) return several ? "have returned" : "has returned";
  if (fiber.wait.kind == WaitKind::kNothing) return "can run";
  return fmt::format("{} at {}", several ? "wait" : "waits",
                     describe(fiber.wait));
}

std::string describe_run(const Fiber& first, const Fiber& last) {
  if (&first == &last) {
    return fmt::format("thread {} {}", first.self.index,
                       describe_state(first, false));
  }
  return fmt::format("threads {}-{} {}", first.self.index, last.self.index,
                     describe_state(first, true));
}

}  // namespace

std::string describe(const Wait& wait) {
  switch (wait.kind) {
    case WaitKind::kNothing:
      return "nothing";
    case WaitKind::kSyncThreads:
      return "sync_threads";
    case WaitKind::kNamed:
      return fmt::format("barrier {} (of {} threads)", wait.id, wait.threads);
    case WaitKind::kCluster:
      return "sync_cluster";
    case WaitKind::kSyncWarp:
      return "sync_warp";
    case WaitKind::kShuffleXor:
      return "shuffle_xor";
    case WaitKind::kShuffle:
      return "shuffle";
    case WaitKind::kBallot:
      return "ballot";
    case WaitKind::kMbarrier:
      return fmt::format(
          "the mbarrier at byte {} of shared memory for parity {}", wait.offset,
          wait.parity ? 1 : 0);
  }
  return "an unknown place";
}

std::string describe_threads(const Group& group) {
  std::string text;
  int phrases = 0;
  const Block* block = nullptr;
  for (int first = 0; first < group.threads();) {
    int end = first + 1;
    const Fiber& fiber = group.fibers()[first];
    while (end < group.threads() && alike(fiber, group.fibers()[end])) ++end;
    if (phrases++ == kMaxPhrases) return text + ", ...";
    auto out = std::back_inserter(text);
    if (fiber.block != block) {
      block = fiber.block;
      fmt::format_to(out, "{}block {}: ", text.empty() ? "" : "; ",
                     block->index);
    } else {
      fmt::format_to(out, ", ");
    }
    fmt::format_to(out, "{}", describe_run(fiber, group.fibers()[end - 1]));
    first = end;
  }
  return text;
}

}  // namespace logpjit::runtime
