// logpjit compile: kernels for any architecture into the cache, without a GPU.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/arch_builder.hpp"
#include "cli/check_cached.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/progress.hpp"
#include "cli/table.hpp"
#include "logpjit/error.hpp"
#include "runtime/launch_table.hpp"

namespace logpjit::cli {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct Flags {
  KernelFlags kernel;
  DeviceFlags where;
  std::string arch;
  std::string config;
  std::string check;
  bool json = false;
};

struct Entry {
  std::string arch;
  LaunchConfig config;
  runtime::Built built;
  std::uint32_t dynamic_shared_bytes = 0;
  double ms = 0;

  bool hit() const { return built.origin != cache::Origin::kCompiled; }
};

Entry build_entry(ArchBuilder& builder, const KernelSpec& spec,
                  const LaunchConfig& config) {
  Entry entry{builder.arch().name, config, {}, 0, 0};
  const auto start = Clock::now();
  entry.built = builder.build(spec, config);
  entry.ms =
      std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  entry.dynamic_shared_bytes =
      runtime::shape_per_row(spec, config).launch.dynamic_shared_bytes;
  return entry;
}

std::vector<Entry> build_all(const Flags& flags) {
  const KernelSpec spec = flags.kernel.spec();
  const std::vector<Arch> archs = parse_archs(flags.arch);
  Progress progress(static_cast<std::int64_t>(archs.size()));
  std::vector<Entry> entries;
  for (const Arch& arch : archs) {
    progress.step(fmt::format("compile {} for {}", spec.op(), arch.name));
    ArchBuilder builder(arch, flags.where.options());
    for (const LaunchConfig& config : configs_of(spec, arch, flags.config)) {
      entries.push_back(build_entry(builder, spec, config));
    }
  }
  return entries;
}

Json known(std::int32_t value) {
  return value < 0 ? Json(nullptr) : Json(value);
}

Json to_json(const Entry& entry) {
  const cache::Image& image = *entry.built.image;
  return {{"arch", entry.arch},
          {"config", entry.config.text()},
          {"key", entry.built.key.hash()},
          {"registers", known(image.facts.registers)},
          {"spills", known(image.facts.spill_bytes)},
          {"stack", known(image.facts.stack_bytes)},
          {"static_shared", known(image.facts.static_shared_bytes)},
          {"dynamic_shared", entry.dynamic_shared_bytes},
          {"size", image.bytes.size()},
          {"cache", entry.hit() ? "hit" : "miss"},
          {"ms", entry.ms},
          {"compile_ms", image.compile_ms}};
}

void print_json(const Flags& flags, const std::vector<Entry>& entries) {
  const KernelSpec spec = flags.kernel.spec();
  Json document{{"op", spec.op()},
                {"dtype", name(spec.logits)},
                {"vocab", spec.vocab},
                {"spec", spec.text()},
                {"entries", Json::array()}};
  for (const Entry& entry : entries) {
    document["entries"].push_back(to_json(entry));
  }
  fmt::print("{}\n", document.dump(2));
}

std::string number_or_dash(std::int32_t value) {
  return value < 0 ? "-" : fmt::format("{}", value);
}

void print_table(const std::vector<Entry>& entries) {
  Table table({"arch", "config", "registers", "spills", "stack", "shared",
               "bytes", "cache", "ms"},
              {2, 3, 4, 5, 6, 8});
  for (const Entry& entry : entries) {
    const cache::LaunchFacts& facts = entry.built.image->facts;
    table.add({entry.arch, entry.config.text(), number_or_dash(facts.registers),
               number_or_dash(facts.spill_bytes),
               number_or_dash(facts.stack_bytes),
               fmt::format("{}", entry.dynamic_shared_bytes +
                                     std::max(facts.static_shared_bytes, 0)),
               fmt::format("{}", entry.built.image->bytes.size()),
               entry.hit() ? "hit" : "miss", fmt::format("{:.1f}", entry.ms)});
  }
  fmt::print("{}", table.text());
}

int compile(const Flags& flags) {
  if (!flags.check.empty()) {
    return check_cached({flags.check, flags.arch}, flags.where.options(),
                        flags.json);
  }
  const auto entries = build_all(flags);
  if (flags.json) {
    print_json(flags, entries);
  } else {
    print_table(entries);
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
  // A list names its kernels itself.
  app.add_option_function<std::string>(
         "--check",
         [&app, flags](const std::string& file) {
           flags->check = file;
           for (const char* flag : {"--op", "--dtype", "--vocab", "--arch"}) {
             app.get_option(flag)->required(false);
           }
         },
         "Compile nothing: say which kernels of this list are in no cache")
      ->type_name("FILE")
      ->excludes("--op")
      ->excludes("--dtype")
      ->excludes("--vocab")
      ->excludes("--config");
  flags->where.attach_cache(app);
  app.add_flag("--json", flags->json, "Print one JSON document");
  return [flags] { return compile(*flags); };
}

}  // namespace logpjit::cli
