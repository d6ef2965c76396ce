// logpjit generate: the source of one kernel.
#include "generator/generate.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/arch.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/write_text.hpp"
#include "runtime/launch_table.hpp"

namespace logpjit::cli {
namespace {

struct Flags {
  KernelFlags kernel;
  std::string config;
  std::string arch = "sm_90a";
  std::string output;
};

generator::Source make_source(const Flags& flags) {
  const KernelSpec spec = flags.kernel.spec();
  const Arch arch = parse_arch(flags.arch);
  const auto choices = runtime::default_choices(spec, arch.device);
  const LaunchConfig config =
      parse_config_flag(flags.config, choices.back().config);
  return generator::generate(
      spec, config,
      arch.is_cpu() ? generator::Dialect::kHost : generator::Dialect::kCuda,
      generator::embedded_manifest());
}

}  // namespace

Action attach_generate(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  flags->kernel.attach(app);
  app.add_option("--config", flags->config,
                 "Launch configuration: block=512,...");
  app.add_option("--arch", flags->arch, "sm_90a, ..., or cpu")
      ->capture_default_str();
  app.add_option("-o,--output", flags->output, "Write here, not to stdout");
  return [flags] {
    const generator::Source source = make_source(*flags);
    if (flags->output.empty()) {
      fmt::print("{}", source.text);
    } else {
      write_text(flags->output, source.text);
    }
    return kSuccess;
  };
}

}  // namespace logpjit::cli
