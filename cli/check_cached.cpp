// Proving that a list of kernels is in the caches.
#include "cli/check_cached.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/arch_builder.hpp"
#include "cli/command.hpp"
#include "cli/spec_list.hpp"
#include "runtime/tuned_configs.hpp"

namespace logpjit::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Missing {
  std::string spec;
  std::string arch;
  std::string config;
  cache::Key key;
};

struct Check {
  std::uint64_t wanted = 0;
  std::vector<Missing> missing;
};

/// One builder an architecture: asking a compiler who it is takes a while.
class Builders {
 public:
  explicit Builders(Options options) : options_(std::move(options)) {}

  ArchBuilder& of(const Arch& arch) {
    auto& builder = builders_[arch.name];
    if (!builder) builder = std::make_unique<ArchBuilder>(arch, options_);
    return *builder;
  }

 private:
  const Options options_;
  std::map<std::string, std::unique_ptr<ArchBuilder>> builders_;
};

void check_kernel(const WantedKernel& wanted,
                  const std::vector<runtime::TunedConfig>& tuned,
                  Builders& builders, Check& check) {
  for (const Arch& arch : wanted.archs) {
    ArchBuilder& builder = builders.of(arch);
    for (const auto& config :
         configs_of(wanted.spec, arch, wanted.config, tuned)) {
      ++check.wanted;
      if (builder.find(wanted.spec, config)) continue;
      check.missing.push_back({wanted.spec.text(), arch.name, config.text(),
                               builder.key(wanted.spec, config)});
    }
  }
}

void print_json(const Check& check) {
  Json document{{"wanted", check.wanted},
                {"missing", check.missing.size()},
                {"kernels", Json::array()}};
  for (const Missing& each : check.missing) {
    document["kernels"].push_back({{"spec", each.spec},
                                   {"arch", each.arch},
                                   {"config", each.config},
                                   {"key", each.key.hash()}});
  }
  fmt::print("{}\n", document.dump(2));
}

void print_text(const Check& check) {
  for (const Missing& each : check.missing) {
    fmt::print("missing {}: {} arch={} config={}\n", each.key.hash(), each.spec,
               each.arch, each.config);
  }
  fmt::print("{} kernels wanted, {} missing\n", check.wanted,
             check.missing.size());
}

}  // namespace

CLI::Option* add_check_flag(CLI::App& app, std::string& file,
                            std::vector<std::string> needed) {
  return app
      .add_option_function<std::string>(
          "--check",
          [&app, &file, needed = std::move(needed)](const std::string& text) {
            file = text;
            for (const std::string& flag : needed) {
              app.get_option(flag)->required(false);
            }
          },
          "Compile nothing: say which kernels of this list are in no cache")
      ->type_name("FILE");
}

int check_cached(const CheckRequest& request, const Options& options,
                 bool json) {
  const auto default_archs =
      request.archs.empty() ? std::vector<Arch>{} : parse_archs(request.archs);
  const auto tuned = runtime::read_tuned_configs(options);
  Builders builders(options);
  Check check;
  for (const auto& wanted : read_spec_list(request.list, default_archs)) {
    check_kernel(wanted, tuned, builders, check);
  }
  json ? print_json(check) : print_text(check);
  return check.missing.empty() ? kSuccess : kFailed;
}

}  // namespace logpjit::cli
