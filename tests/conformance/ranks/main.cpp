// vocab_parallel: correctness and speed of vocab-parallel operations over NCCL,
// on any number of GPUs. Ranks are threads of one process (one host), or
// processes started by launch_ranks.py (any hosts). Rank 0 prints one JSON
// document.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "logpjit/error.hpp"
#include "tests/conformance/ranks/ranks.hpp"

namespace logpjit::tests {
namespace {

using Json = nlohmann::json;

std::string hex(const NcclId& id) {
  std::string text;
  char two[3];
  for (const char byte : id) {
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(byte));
    text += two;
  }
  return text;
}

NcclId parse_id(const std::string& text) {
  NcclId id{};
  if (text.size() != 2 * id.size()) {
    throw Error(ErrorCode::kInvalidArgument, "--id: is not 256 hex digits");
  }
  for (std::size_t i = 0; i < id.size(); ++i) {
    id[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  return id;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

Json run(const RankFlags& flags, Rank& rank, const std::string& commit) {
  Json made;
  made["gpus"] = flags.ranks;
  made["gpu"] = rank.runtime().device().name;
  made["driver"] = rank.runtime().device().software;
  made["nccl"] = flags.on_cpu ? "none" : rank.nccl().version();
  made["date"] = today();
  made["commit"] = commit;
  if (flags.checks) made["checks"] = Json::parse(run_checks(rank));
  if (flags.speed) made["speed"] = Json::parse(run_speed(rank));
  if (flags.late) {
    for (Json& check : Json::parse(run_late(rank))) {
      made["checks"].push_back(std::move(check));
    }
    rank.give_up(flags.rank < flags.ranks - 1);
  }
  return made;
}

bool all_passed(const Json& report) {
  if (!report.contains("checks")) return true;
  for (const Json& check : report["checks"]) {
    if (!check["passed"].get<bool>()) return false;
  }
  return true;
}

/// Ranks as threads: the first failure ends the process, since the other ranks
/// would wait for it.
Json run_threads(const RankFlags& flags, const std::string& commit) {
  const NcclId id = make_nccl_id(Options::from_environment());
  Json report;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < flags.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      RankFlags mine = flags;
      mine.rank = rank;
      mine.device = rank;
      try {
        Rank joined(mine, id);
        Json made = run(mine, joined, commit);
        if (rank == 0) report = std::move(made);
      } catch (const std::exception& error) {
        std::cerr << "rank " << rank << ": " << error.what() << '\n';
        std::_Exit(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return report;
}

/// Rank 0 says where the others find it, as its first line.
std::unique_ptr<Rank> join(const RankFlags& flags, const std::string& id,
                           const std::string& address) {
  if (flags.rank != 0) {
    const NcclId shared = parse_id(id);
    if (!flags.on_cpu) return std::make_unique<Rank>(flags, shared);
    return std::make_unique<Rank>(
        flags, join_sockets(shared, flags.rank, flags.ranks));
  }
  if (flags.on_cpu) {
    const SocketGroup group(address);
    std::cout << hex(group.id()) << std::endl;
    return std::make_unique<Rank>(flags, group.meet(flags.ranks));
  }
  const NcclId shared = make_nccl_id(Options::from_environment());
  std::cout << hex(shared) << std::endl;
  return std::make_unique<Rank>(flags, shared);
}

int main_of(int argc, char** argv) {
  CLI::App app{"Vocab-parallel operations over NCCL: checks and times"};
  RankFlags flags;
  flags.rows = {1024, 8192, 32768};
  std::string id;
  std::string commit = "unknown";
  bool only_checks = false;
  bool only_speed = false;
  int rank = -1;
  app.add_option("--ranks", flags.ranks, "Ranks in all")->required();
  app.add_option("--rank", rank, "This process's rank; absent: threads");
  app.add_option("--device", flags.device, "This process's GPU");
  app.add_option("--id", id, "What rank 0 printed as its first line");
  app.add_option("--vocab", flags.vocab, "Columns in all");
  app.add_option("--rows", flags.rows, "Numbers of rows")->delimiter(',');
  app.add_option("--commit", commit, "Recorded in the report");
  std::string address = "127.0.0.1";
  app.add_flag("--cpu", flags.on_cpu, "Processes on the CPU device, no NCCL");
  app.add_option("--address", address, "With --cpu: IPv4 address of rank 0");
  app.add_flag("--quick", flags.quick, "A few of the checks");
  app.add_flag("--late", flags.late,
               "At the end the last rank stays away: what the others hear");
  app.add_flag("--only-checks", only_checks);
  app.add_flag("--only-speed", only_speed);
  CLI11_PARSE(app, argc, argv);
  flags.checks = !only_speed;
  flags.speed = !only_checks && !flags.on_cpu;
  if (flags.on_cpu && rank < 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "--cpu: needs --rank: start it with launch_ranks.py");
  }
  Json report;
  if (rank < 0) {
    report = run_threads(flags, commit);
  } else {
    flags.rank = rank;
    const auto joined = join(flags, id, address);
    report = run(flags, *joined, commit);
    if (rank != 0) return all_passed(report) ? 0 : 1;
  }
  std::cout << report.dump(1) << '\n';
  return all_passed(report) ? 0 : 1;
}

}  // namespace
}  // namespace logpjit::tests

int main(int argc, char** argv) {
  try {
    return logpjit::tests::main_of(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
