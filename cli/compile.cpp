// logpjit compile: kernels for any architecture into the cache, without a GPU.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/arch_builder.hpp"
#include "cli/built_kernel.hpp"
#include "cli/check_cached.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/progress.hpp"
#include "cli/table.hpp"
#include "logpjit/error.hpp"
#include "runtime/tuned_configs.hpp"
#include "tuning/stopwatch.hpp"

namespace logpjit::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  KernelFlags kernel;
  DeviceFlags where;
  std::string arch;
  std::string config;
  std::string check;
  bool json = false;
};

/// Kernels and how long all of them took.
struct Built {
  std::vector<BuiltKernel> entries;
  double ms = 0;
};

Built build_all(const Flags& flags) {
  const auto begin = std::chrono::steady_clock::now();
  const KernelSpec spec = flags.kernel.spec();
  const std::vector<Arch> archs = parse_archs(flags.arch);
  const Options options = flags.where.options();
  const auto tuned = runtime::read_tuned_configs(options);
  Progress progress(static_cast<std::int64_t>(archs.size()));
  Built built;
  for (const Arch& arch : archs) {
    progress.step(fmt::format("compile {} for {}", spec.op(), arch.name));
    ArchBuilder builder(arch, options);
    std::ranges::move(
        build_kernels(builder, spec,
                      configs_of(spec, arch, flags.config, tuned)),
        std::back_inserter(built.entries));
  }
  built.ms = tuning::ms_since(begin);
  return built;
}

void print_json(const Flags& flags, const Built& built) {
  const KernelSpec spec = flags.kernel.spec();
  Json document{{"op", spec.op()},         {"dtype", name(spec.logits)},
                {"vocab", spec.vocab},     {"spec", spec.text()},
                {"ms", built.ms},          {"threads", build_threads()},
                {"entries", Json::array()}};
  for (const BuiltKernel& entry : built.entries) {
    document["entries"].push_back(Json::parse(to_json(entry)));
  }
  fmt::print("{}\n", document.dump(2));
}

std::string number_or_dash(std::int32_t value) {
  return value < 0 ? "-" : fmt::format("{}", value);
}

void print_table(const Built& all) {
  Table table({"arch", "config", "registers", "spills", "stack", "shared",
               "bytes", "cache", "ms"},
              {2, 3, 4, 5, 6, 8});
  for (const BuiltKernel& entry : all.entries) {
    const cache::LaunchFacts& facts = entry.built.image->facts;
    table.add({entry.arch, entry.config.text(), number_or_dash(facts.registers),
               number_or_dash(facts.spill_bytes),
               number_or_dash(facts.stack_bytes),
               fmt::format("{}", entry.dynamic_shared_bytes +
                                     std::max(facts.static_shared_bytes, 0)),
               fmt::format("{}", entry.built.image->bytes.size()),
               entry.hit() ? "hit" : "miss", fmt::format("{:.1f}", entry.ms)});
  }
  fmt::print("{}{} kernels in {:.0f} ms\n", table.text(), all.entries.size(),
             all.ms);
}

int compile(const Flags& flags) {
  if (!flags.check.empty()) {
    return check_cached({flags.check, flags.arch}, flags.where.options(),
                        flags.json);
  }
  const Built built = build_all(flags);
  if (flags.json) {
    print_json(flags, built);
  } else {
    print_table(built);
  }
  return kSuccess;
}

}  // namespace

Action attach_compile(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  flags->kernel.attach(app);
  app.add_option("--arch", flags->arch, "sm_90a,sm_100a,..., or cpu")
      ->required();
  app.add_option("--config", flags->config,
                 "Launch configuration: block=512,...");
  add_check_flag(app, flags->check, {"--op", "--dtype", "--vocab", "--arch"})
      ->excludes("--op")
      ->excludes("--dtype")
      ->excludes("--vocab")
      ->excludes("--config");
  flags->where.attach_cache(app);
  app.add_flag("--json", flags->json, "Print one JSON document");
  return [flags] { return compile(*flags); };
}

}  // namespace logpjit::cli
