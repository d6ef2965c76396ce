// Which folder may include and link which.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "tests/architecture/rules.hpp"

namespace logpjit::architecture {
namespace {

using Names = std::vector<std::string_view>;

bool starts_with_any(std::string_view text, const Names& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](auto prefix) { return text.starts_with(prefix); });
}

/// What the files below `folder` may include in quotes.
struct Layer {
  std::string_view folder;
  Names may_include;
};

const Layer* layer_of(std::string_view path) {
  static const std::vector<Layer> layers = {
      {"runtime/include/logpjit/", {"logpjit/"}},
      {"generator/", {"generator/", "logpjit/"}},
      {"cache/", {"cache/", "logpjit/"}},
      // Who launches kernels shares the structs of their arguments.
      {"runtime/cpu/",
       {"runtime/", "generator/", "cache/", "logpjit/", "templates/common/",
        "templates/prelude/host.h"}},
      {"runtime/",
       {"runtime/", "generator/", "cache/", "logpjit/", "templates/common/"}},
      {"tuning/",
       {"tuning/", "runtime/", "generator/", "cache/", "logpjit/",
        "templates/common/"}},
      {"cli/",
       {"cli/", "tuning/", "runtime/", "generator/", "cache/", "logpjit/"}},
      {"templates/", {"common/"}},
  };
  for (const Layer& layer : layers) {
    if (path.starts_with(layer.folder)) return &layer;
  }
  return nullptr;
}

/// A library that has its place; `only_in` empty means nowhere at all.
struct Placed {
  std::string_view header;
  Names only_in;
  std::string_view why;
};

const std::vector<Placed>& placed_headers() {
  static const std::vector<Placed> headers = {
      {"clang-c/",
       {"generator/scan/"},
       "LLVM must not enter a process that uses the library"},
      {"CLI/",
       {"cli/", "generator/scan/", "generator/embed/",
        "runtime/fallback/embed/"},
       "programs only"},
      {"boost/", {"runtime/cpu/"}, "fibers belong to the CPU device"},
      {"dlfcn.h",
       {"runtime/", "tests/"},
       "libraries are opened by the runtime"},
      {"generator/scan/", {"generator/scan/"}, "nothing links the scanner"},
      {"generator/embed/", {"generator/embed/"}, "a program of the build"},
      {"cuda", {}, "no CUDA header is needed to build; see runtime/cuda"},
      {"nvrtc.h", {}, "no CUDA header is needed to build; see runtime/cuda"},
      {"nccl.h", {}, "no NCCL header is needed to build"},
  };
  return headers;
}

bool is_header(std::string_view path) {
  return path.ends_with(".hpp") || path.ends_with(".h");
}

/// <vector>, <cstdint>, or a C header of the language itself.
bool is_standard(std::string_view target) {
  static const Names c_headers = {"stdint.h", "stddef.h", "stdbool.h"};
  if (std::find(c_headers.begin(), c_headers.end(), target) !=
      c_headers.end()) {
    return true;
  }
  return std::all_of(target.begin(), target.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
}

bool is_public(std::string_view path) {
  return path.starts_with("runtime/include/");
}

std::string angled_objection(std::string_view path, std::string_view target) {
  if (path.starts_with("templates/") && path != "templates/prelude/host.h") {
    return "a template includes only \"common/...\"";
  }
  if (is_public(path) && !is_standard(target)) {
    return "a public header includes only the standard library and "
           "\"logpjit/...\"";
  }
  return {};
}

std::string quoted_objection(std::string_view path, std::string_view target) {
  const Layer* layer = layer_of(path);
  if (layer == nullptr || starts_with_any(target, layer->may_include)) {
    return {};
  }
  return fmt::format("{} may include only {}, by full path", layer->folder,
                     fmt::join(layer->may_include, " "));
}

std::string objection(std::string_view path, const Include& include) {
  if (include.target.starts_with("nlohmann/") && is_header(path)) {
    return "nlohmann/json belongs in .cpp files only";
  }
  for (const Placed& placed : placed_headers()) {
    if (include.target.starts_with(placed.header) &&
        !starts_with_any(path, placed.only_in)) {
      // Tests may drive what the product keeps apart, except for LLVM.
      if (path.starts_with("tests/") && placed.header != "clang-c/") continue;
      return std::string(placed.why);
    }
  }
  return include.angled ? angled_objection(path, include.target)
                        : quoted_objection(path, include.target);
}

/// The internal libraries a folder's CMakeLists.txt may not name.
Names forbidden_libraries(std::string_view path) {
  const Layer* layer = layer_of(path);
  if (layer == nullptr) return {};
  Names forbidden;
  for (const std::string_view folder :
       {"generator/", "cache/", "runtime/", "tuning/", "cli/"}) {
    if (!starts_with_any(folder, layer->may_include)) {
      forbidden.push_back(folder.substr(0, folder.size() - 1));
    }
  }
  return forbidden;
}

}  // namespace

void check_includes(const SourceFile& file, Violations& found) {
  if (!is_cpp(file.path)) return;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    // A commented-out or quoted directive is none: its '#' is blanked.
    if (file.code[i].find('#') == std::string::npos) continue;
    const Include include = parse_include(file.lines[i]);
    if (include.target.empty()) continue;
    const std::string why = objection(file.path, include);
    if (why.empty()) continue;
    found.push_back({file.path, i + 1,
                     fmt::format("includes {}: {}", include.target, why)});
  }
}

void check_links(const SourceFile& file, Violations& found) {
  if (!file.path.ends_with("CMakeLists.txt")) return;
  for (const std::string_view library : forbidden_libraries(file.path)) {
    const std::string target = fmt::format("logpjit_{}", library);
    for (std::size_t i = 0; i < file.code.size(); ++i) {
      if (file.code[i].find(target) == std::string::npos) continue;
      found.push_back({file.path, i + 1,
                       fmt::format("names {}: dependencies point one way, "
                                   "generator and cache <- runtime <- tuning "
                                   "<- cli",
                                   target)});
    }
  }
}

}  // namespace logpjit::architecture
