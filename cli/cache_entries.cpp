// logpjit cache path, ls and show: what is kept.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cache/key.hpp"
#include "cache/maintenance.hpp"
#include "cli/cache_commands.hpp"
#include "cli/command.hpp"
#include "cli/table.hpp"
#include "logpjit/error.hpp"

namespace logpjit::cli {
namespace {

using Json = nlohmann::ordered_json;

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

}  // namespace

std::filesystem::path cache_directory(const CacheFlags& flags) {
  const auto directory = flags.where.options().cache_directory;
  if (directory) return *directory;
  throw Error(ErrorCode::kInvalidArgument,
              "cache: there is no directory, kernels are kept in memory only: "
              "give --cache-dir or set LOGPJIT_CACHE_DIR");
}

int cache_path(const CacheFlags& flags) {
  fmt::print("{}\n", cache_directory(flags).string());
  return kSuccess;
}

int cache_list(const CacheFlags& flags) {
  const auto directory = cache_directory(flags);
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

int cache_show(const CacheFlags& flags) {
  const auto listed = cache::find_entry(cache::real_file_system(),
                                        cache_directory(flags), flags.entry);
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

}  // namespace logpjit::cli
