// Writes manifest and files as C++ initialisers.
#include "generator/embed/embedding.hpp"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <string_view>

#include "generator/content.hpp"
#include "logpjit/error.hpp"

namespace logpjit::generator::embed {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHead =
    R"(// Written by logpjit-embed during the build.
#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <utility>

#include "generator/manifest.hpp"
#include "logpjit/error.hpp"

namespace logpjit::generator {{
namespace {{

using std::string_view_literals::operator""sv;
using File = std::pair<std::string_view, std::string_view>;

constexpr std::array<File, {}> kFiles{{{{
)";

constexpr std::string_view kMiddle = R"(}};

Manifest make_manifest() {
  return )";

constexpr std::string_view kTail = R"(;
}

}  // namespace

// Without a lock, which a process forked meanwhile would find taken for ever:
// of two threads that come first, one makes it in vain.
const Manifest& embedded_manifest() {
  static constinit std::atomic<const Manifest*> manifest = nullptr;
  if (const Manifest* made = manifest.load()) return *made;
  const Manifest* mine = new Manifest(make_manifest());
  const Manifest* first = nullptr;
  if (manifest.compare_exchange_strong(first, mine)) return *mine;
  delete mine;
  return *first;
}

std::string_view embedded_file(std::string_view path) {
  for (const auto& [name, content] : kFiles) {
    if (name == path) return content;
  }
  throw Error(ErrorCode::kInternal,
              "no template file '" + std::string(path) +
                  "' was embedded: report it with the name");
}

}  // namespace logpjit::generator
)";

// Octal escapes end after three digits, so what follows cannot join them.
std::string escape(unsigned char c) {
  if (c == '\n') return "\\n";
  // The question mark, lest two of them begin a trigraph.
  if (c == '"' || c == '\\' || c == '?') return {'\\', static_cast<char>(c)};
  if (c < ' ' || c > '~') return fmt::format("\\{:03o}", c);
  return {static_cast<char>(c)};
}

// One literal a line; the suffix keeps NUL bytes.
std::string literal(std::string_view text, std::string_view suffix) {
  std::string result = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    result += escape(static_cast<unsigned char>(text[i]));
    if (text[i] == '\n' && i + 1 < text.size()) result += "\"\n    \"";
  }
  return result.append("\"").append(suffix);
}

std::string string(std::string_view text) {
  return fmt::format("std::string({}, {})", literal(text, ""), text.size());
}

template <typename Item, typename Write>
std::string list(const std::vector<Item>& items, Write write) {
  std::string text = "{";
  for (const Item& item : items) text += write(item) + ",\n";
  return text + "}";
}

std::string_view kind_name(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::kType:
      return "ParameterKind::kType";
    case ParameterKind::kBoolean:
      return "ParameterKind::kBoolean";
    case ParameterKind::kInteger:
      break;
  }
  return "ParameterKind::kInteger";
}

std::string_view role_name(ParameterRole role) {
  return role == ParameterRole::kTunable ? "ParameterRole::kTunable"
                                         : "ParameterRole::kSpec";
}

// Spelled so that the smallest value is an integer literal too.
std::string integer(std::int64_t value) {
  return fmt::format("static_cast<std::int64_t>({}ull)",
                     static_cast<std::uint64_t>(value));
}

std::string parameter(const TemplateParameter& parameter) {
  return fmt::format(
      "TemplateParameter{{.name = {}, .kind = {}, .role = {}, .domain = "
      "{{.values = {}, .low = {}, .high = {}}}}}",
      string(parameter.name), kind_name(parameter.kind),
      role_name(parameter.role), list(parameter.domain.values, string),
      integer(parameter.domain.low), integer(parameter.domain.high));
}

std::string argument(const ArgumentField& field) {
  return fmt::format(
      "ArgumentField{{.name = {}, .type = {}, .offset = {}, .size = {}}}",
      string(field.name), string(field.type), integer(field.offset),
      integer(field.size));
}

std::string kernel(const KernelManifest& kernel) {
  return fmt::format(
      "KernelManifest{{.name = {}, .qualified_name = {}, .summary = {}, "
      ".file = {}, .line = {}, .parameters = {}, .argument_type = {}, "
      ".argument_size = {}, .arguments = {}}}",
      string(kernel.name), string(kernel.qualified_name),
      string(kernel.summary), string(kernel.file), kernel.line,
      list(kernel.parameters, parameter), string(kernel.argument_type),
      integer(kernel.argument_size), list(kernel.arguments, argument));
}

std::string closure_file(const ClosureFile& file) {
  return fmt::format("ClosureFile{{.path = {}, .digest = {}}}",
                     string(file.path), string(file.digest));
}

std::string template_manifest(const TemplateManifest& manifest) {
  return fmt::format(
      "TemplateManifest{{.file = {}, .closure = {}, .kernels = {}}}",
      string(manifest.file), list(manifest.closure, closure_file),
      list(manifest.kernels, kernel));
}

void add_files(const fs::path& dir, const std::string& prefix,
               std::string_view suffix, Files& files) {
  for (const auto& entry : fs::directory_iterator(dir)) {
    if (!entry.is_regular_file() || entry.path().extension() != suffix) {
      continue;
    }
    files.emplace(prefix + entry.path().filename().string(),
                  read_content(entry.path()));
  }
}

}  // namespace

Files files_to_embed(const fs::path& templates_dir) {
  Files files;
  add_files(templates_dir, "", ".cuh", files);
  add_files(templates_dir / "common", "common/", ".cuh", files);
  add_files(templates_dir / "prelude", "prelude/", ".h", files);
  return files;
}

void check_digests(const Manifest& manifest, const Files& files) {
  for (const TemplateManifest& each : manifest.templates) {
    for (const ClosureFile& file : each.closure) {
      const auto found = files.find(file.path);
      const bool same =
          found != files.end() && content_digest(found->second) == file.digest;
      if (same) continue;
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("'{}' is not what the manifest of '{}' was made from: "
                      "build the target update-manifest where libclang is "
                      "installed",
                      file.path, each.file));
    }
  }
}

std::string embedding(const Manifest& manifest, const Files& files) {
  std::string text = fmt::format(kHead, files.size());
  for (const auto& [path, content] : files) {
    fmt::format_to(std::back_inserter(text), "    File{{{}, {}}},\n",
                   literal(path, "sv"), literal(content, "sv"));
  }
  text += kMiddle;
  text += fmt::format("Manifest{{.templates = {}}}",
                      list(manifest.templates, template_manifest));
  text += kTail;
  return text;
}

}  // namespace logpjit::generator::embed
