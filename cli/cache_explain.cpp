// logpjit cache explain: a wanted kernel beside the nearest one that is there.
#include "cache/explain.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "cli/arch_builder.hpp"
#include "cli/cache_commands.hpp"
#include "cli/command.hpp"
#include "runtime/tuned_configs.hpp"

namespace logpjit::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Explained {
  std::string arch;
  LaunchConfig config;
  cache::Key key;
  cache::Explanation explanation;
};

/// In the order in which a run would look through them.
std::vector<cache::Searched> directories_of(const Options& options) {
  std::vector<cache::Searched> directories;
  if (options.cache_directory) {
    directories.push_back({*options.cache_directory, cache::Role::kUser});
  }
  for (const auto& directory : options.read_only_caches) {
    directories.push_back({directory, cache::Role::kReadOnly});
  }
  return directories;
}

std::vector<Explained> explain_all(const CacheFlags& flags) {
  const KernelSpec spec = flags.kernel.spec();
  const Options options = flags.where.options();
  const auto directories = directories_of(options);
  const auto tuned = runtime::read_tuned_configs(options);
  std::vector<Explained> all;
  for (const Arch& arch : parse_archs(flags.arch)) {
    const ArchBuilder builder(arch, options);
    for (const LaunchConfig& config :
         configs_of(spec, arch, flags.config, tuned)) {
      cache::Key key = builder.key(spec, config);
      auto explanation =
          cache::explain(cache::real_file_system(), key, directories);
      all.push_back(
          {arch.name, config, std::move(key), std::move(explanation)});
    }
  }
  return all;
}

std::string state_name(cache::Explanation::State state) {
  switch (state) {
    case cache::Explanation::State::kHit:
      return "hit";
    case cache::Explanation::State::kSealedHit:
      return "sealed_hit";
    case cache::Explanation::State::kMiss:
      return "miss";
  }
  return "";
}

Json text_or_null(const std::optional<std::string>& text) {
  return text ? Json(*text) : Json(nullptr);
}

Json to_json(const Explained& each) {
  Json json{{"arch", each.arch},
            {"config", each.config.text()},
            {"key", each.key.hash()},
            {"state", state_name(each.explanation.state)},
            {"directory", each.explanation.place},
            {"entry", each.explanation.name},
            {"differences", Json::array()},
            {"obstacles", each.explanation.obstacles}};
  for (const auto& difference : each.explanation.differences) {
    json["differences"].push_back(
        {{"field", difference.name},
         {"wanted", text_or_null(difference.wanted)},
         {"there", text_or_null(difference.present)}});
  }
  return json;
}

}  // namespace

int cache_explain(const CacheFlags& flags) {
  const auto all = explain_all(flags);
  if (flags.json) {
    Json document{{"kernels", Json::array()}};
    for (const Explained& each : all) {
      document["kernels"].push_back(to_json(each));
    }
    fmt::print("{}\n",
               document.dump(2, ' ', false, Json::error_handler_t::replace));
    return kSuccess;
  }
  for (const Explained& each : all) {
    fmt::print("{} arch={} config={}\n{}", flags.kernel.spec().text(),
               each.arch, each.config.text(), each.explanation.text());
  }
  return kSuccess;
}

}  // namespace logpjit::cli
