// logpjit compile: kernels for any architecture into the cache, without a GPU.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/arch.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/progress.hpp"
#include "cli/table.hpp"
#include "logpjit/error.hpp"
#include "runtime/engine.hpp"
#include "runtime/open_device.hpp"

namespace logpjit::cli {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct Flags {
  KernelFlags kernel;
  DeviceFlags where;
  std::string arch;
  std::string config;
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

std::vector<Arch> parse_archs(const std::string& text) {
  std::vector<Arch> archs;
  for (const std::string& part : split_list(text)) {
    archs.push_back(parse_arch(part));
  }
  if (archs.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "--arch: names no architecture (such as: sm_90a,sm_100a)");
  }
  return archs;
}

/// Compiles for one architecture with no device behind it.
class ArchBuilder {
 public:
  ArchBuilder(const Arch& arch, Options options) : arch_(arch) {
    options.device = arch.is_cpu() ? "cpu" : "cuda";
    auto device = arch.is_cpu() ? runtime::open_device(options) : nullptr;
    target_ = device ? device->target() : arch.name;
    engine_ = std::make_unique<runtime::Engine>(
        options, std::move(device), runtime::make_compiler(options));
  }

  Entry build(const KernelSpec& spec, const LaunchConfig& config) {
    Entry entry{arch_.name, config, {}, 0, 0};
    const auto start = Clock::now();
    entry.built = engine_->build(spec, config, target_);
    entry.ms =
        std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    entry.dynamic_shared_bytes =
        runtime::shape_per_row(spec, config).launch.dynamic_shared_bytes;
    return entry;
  }

 private:
  const Arch& arch_;
  std::string target_;
  std::unique_ptr<runtime::Engine> engine_;
};

/// The configurations that a run without tuning would use, each once.
std::vector<LaunchConfig> configs_of(const KernelSpec& spec, const Arch& arch,
                                     const std::string& asked) {
  const auto choices = runtime::default_choices(spec, arch.device);
  if (!asked.empty()) {
    return {parse_config_flag(asked, choices.back().config)};
  }
  std::vector<LaunchConfig> configs;
  for (const runtime::RowChoice& choice : choices) {
    if (std::find(configs.begin(), configs.end(), choice.config) ==
        configs.end()) {
      configs.push_back(choice.config);
    }
  }
  return configs;
}

/// An architecture that the compiler does not know is the caller's mistake.
Entry build_entry(ArchBuilder& builder, const KernelSpec& spec,
                  const LaunchConfig& config) {
  try {
    return builder.build(spec, config);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("--arch: {}", error.message()), error.log());
  }
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

}  // namespace

Action attach_compile(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  flags->kernel.attach(app);
  app.add_option("--arch", flags->arch, "sm_90a,sm_100a,..., or cpu")
      ->required();
  app.add_option("--config", flags->config,
                 "Launch configuration: block=512,...");
  flags->where.attach_cache(app);
  app.add_flag("--json", flags->json, "Print one JSON document");
  return [flags] {
    const auto entries = build_all(*flags);
    if (flags->json) {
      print_json(*flags, entries);
    } else {
      print_table(entries);
    }
    return kSuccess;
  };
}

}  // namespace logpjit::cli
