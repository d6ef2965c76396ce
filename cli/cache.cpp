// logpjit cache: the table of its commands and their flags.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/cache_commands.hpp"
#include "cli/commands.hpp"

namespace logpjit::cli {
namespace {

struct CacheCommand {
  const char* name;
  const char* summary;
  int (*run)(const CacheFlags& flags);
  void (*attach)(CLI::App& app, CacheFlags& flags);
};

void attach_nothing(CLI::App&, CacheFlags&) {}

void attach_json(CLI::App& app, CacheFlags& flags) {
  app.add_flag("--json", flags.json, "Print one JSON document");
}

void attach_show(CLI::App& app, CacheFlags& flags) {
  app.add_option("entry", flags.entry, "Its name, or the beginning of it")
      ->required();
  attach_json(app, flags);
}

void attach_explain(CLI::App& app, CacheFlags& flags) {
  flags.kernel.attach(app);
  app.add_option("--arch", flags.arch, "sm_90a,sm_100a,..., or cpu")
      ->required();
  app.add_option("--config", flags.config,
                 "Launch configuration: block=512,...");
  attach_json(app, flags);
}

void attach_verify(CLI::App& app, CacheFlags& flags) {
  app.add_flag("--repair", flags.repair, "Remove what is damaged");
}

void attach_trim(CLI::App& app, CacheFlags& flags) {
  add_integer(app, "--max-bytes", flags.bytes,
              "Most bytes to keep; else the limit in force");
  add_integer(app, "--max-entries", flags.entries,
              "Most entries to keep; else the limit in force");
}

void attach_file(CLI::App& app, CacheFlags& flags) {
  app.add_option("file", flags.file, "The file of all entries")->required();
}

constexpr CacheCommand kCommands[] = {
    {"path", "Print the directory", cache_path, attach_nothing},
    {"ls", "List the entries", cache_list, attach_json},
    {"show", "Print one entry's key and facts", cache_show, attach_show},
    {"explain", "Say why a kernel hits or misses", cache_explain,
     attach_explain},
    {"verify", "Read and check every entry", cache_verify, attach_verify},
    {"trim", "Remove what was not used for longest", cache_trim, attach_trim},
    {"clear", "Remove all entries", cache_clear, attach_nothing},
    {"export", "Write all entries to one file", cache_export, attach_file},
    {"import", "Check such a file and add its entries", cache_import,
     attach_file},
};

}  // namespace

Action attach_cache(CLI::App& app) {
  auto flags = std::make_shared<CacheFlags>();
  app.require_subcommand(1);
  for (const CacheCommand& command : kCommands) {
    CLI::App* inner = app.add_subcommand(command.name, command.summary);
    command.attach(*inner, *flags);
    flags->where.attach_directory(*inner);
  }
  return [flags, &app] {
    for (const CacheCommand& command : kCommands) {
      if (app.got_subcommand(command.name)) return command.run(*flags);
    }
    return kWrongUsage;
  };
}

}  // namespace logpjit::cli
