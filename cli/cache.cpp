// logpjit cache: what is kept, whether it is whole, and getting rid of it.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cache/key.hpp"
#include "cache/maintenance.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/table.hpp"
#include "logpjit/error.hpp"

namespace logpjit::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  DeviceFlags where;
  std::string entry;
  bool json = false;
  bool repair = false;
};

/// The writable directory; Error{kInvalidArgument} when there is none.
std::filesystem::path directory_of(const Flags& flags) {
  const auto directory = flags.where.options().cache_directory;
  if (directory) return *directory;
  throw Error(ErrorCode::kInvalidArgument,
              "cache: there is no directory, kernels are kept in memory only: "
              "give --cache-dir or set LOGPJIT_CACHE_DIR");
}

std::string field(const cache::Key& key, std::string_view name) {
  for (const auto& [field_name, value] : key.fields()) {
    if (field_name == name) return value;
  }
  return "";
}

std::string kind_name(cache::ImageKind kind) {
  switch (kind) {
    case cache::ImageKind::kCubin:
      return "cubin";
    case cache::ImageKind::kPtx:
      return "ptx";
    case cache::ImageKind::kSharedObject:
      return "shared_object";
  }
  return "";
}

std::string time_text(std::time_t time) {
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(time));
}

Json fields_json(const cache::Listed& listed) {
  Json fields = Json::object();
  if (const auto key = cache::Key::parse(listed.entry.key_text)) {
    for (const auto& [name, value] : key->fields()) fields[name] = value;
  }
  return fields;
}

Json to_json(const cache::Listed& listed) {
  const cache::Image& image = listed.entry.image;
  return {{"name", listed.name},
          {"bytes", listed.bytes},
          {"used", static_cast<std::int64_t>(listed.used)},
          {"kind", kind_name(image.kind)},
          {"registers", image.facts.registers},
          {"spills", image.facts.spill_bytes},
          {"compile_ms", image.compile_ms},
          {"key", fields_json(listed)}};
}

int print_path(const Flags& flags) {
  fmt::print("{}\n", directory_of(flags).string());
  return kSuccess;
}

int list(const Flags& flags) {
  const auto directory = directory_of(flags);
  const auto entries =
      cache::list_entries(cache::real_file_system(), directory);
  if (flags.json) {
    Json document{{"directory", directory.string()},
                  {"entries", Json::array()}};
    for (const cache::Listed& listed : entries) {
      document["entries"].push_back(to_json(listed));
    }
    fmt::print("{}\n",
               document.dump(2, ' ', false, Json::error_handler_t::replace));
    return kSuccess;
  }
  Table table({"entry", "arch", "bytes", "used", "kernel"}, {2});
  std::uint64_t bytes = 0;
  for (const cache::Listed& listed : entries) {
    const auto key = cache::Key::parse(listed.entry.key_text);
    table.add(
        {listed.name.substr(0, 12), key ? field(*key, "arch") : "",
         fmt::format("{}", listed.bytes), time_text(listed.used),
         key ? fmt::format("{} {}", field(*key, "spec"), field(*key, "config"))
             : ""});
    bytes += listed.bytes;
  }
  if (!entries.empty()) fmt::print("{}", table.text());
  fmt::print("{} entries, {} bytes in {}\n", entries.size(), bytes,
             directory.string());
  return kSuccess;
}

int show(const Flags& flags) {
  const auto listed = cache::find_entry(cache::real_file_system(),
                                        directory_of(flags), flags.entry);
  if (flags.json) {
    fmt::print("{}\n", to_json(listed).dump(2, ' ', false,
                                            Json::error_handler_t::replace));
    return kSuccess;
  }
  const cache::Image& image = listed.entry.image;
  fmt::print("{}", listed.entry.key_text);
  fmt::print("entry: {}\nkind: {}\nkernel_name: {}\n", listed.name,
             kind_name(image.kind), image.entry);
  fmt::print("registers: {}\nspill_bytes: {}\nstack_bytes: {}\n",
             image.facts.registers, image.facts.spill_bytes,
             image.facts.stack_bytes);
  fmt::print("bytes: {}\ncompile_ms: {:.1f}\nused: {}\n", listed.bytes,
             image.compile_ms, time_text(listed.used));
  return kSuccess;
}

int verify(const Flags& flags) {
  const auto result = cache::check_entries(cache::real_file_system(),
                                           directory_of(flags), flags.repair);
  for (const cache::Problem& problem : result.problems) {
    fmt::print("{}: {}\n", problem.name, problem.reason);
  }
  for (const std::string& name : result.debris) {
    fmt::print("{}: left over\n", name);
  }
  fmt::print("{} good, {} damaged{}, {} left over, {} of a newer format\n",
             result.good, result.problems.size(),
             result.repaired ? " (removed)" : "", result.debris.size(),
             result.newer_format);
  return result.problems.empty() || result.repaired ? kSuccess : kFailed;
}

int clear(const Flags& flags) {
  const auto directory = directory_of(flags);
  fmt::print("{} entries removed from {}\n",
             cache::clear_entries(cache::real_file_system(), directory),
             directory.string());
  return kSuccess;
}

struct CacheCommand {
  const char* name;
  const char* summary;
  int (*run)(const Flags& flags);
};

constexpr CacheCommand kCommands[] = {
    {"path", "Print the directory", print_path},
    {"ls", "List the entries", list},
    {"show", "Print one entry's key and facts", show},
    {"verify", "Read and check every entry", verify},
    {"clear", "Remove all entries", clear},
};

void attach_flags(CLI::App& app, std::string_view name, Flags& flags) {
  flags.where.attach_cache(app);
  if (name == "show") {
    app.add_option("entry", flags.entry, "Its name, or the beginning of it")
        ->required();
  }
  if (name == "ls" || name == "show") {
    app.add_flag("--json", flags.json, "Print one JSON document");
  }
  if (name == "verify") {
    app.add_flag("--repair", flags.repair, "Remove what is damaged");
  }
}

}  // namespace

Action attach_cache(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.require_subcommand(1);
  for (const CacheCommand& command : kCommands) {
    attach_flags(*app.add_subcommand(command.name, command.summary),
                 command.name, *flags);
  }
  return [flags, &app] {
    for (const CacheCommand& command : kCommands) {
      if (app.got_subcommand(command.name)) return command.run(*flags);
    }
    return kWrongUsage;
  };
}

}  // namespace logpjit::cli
