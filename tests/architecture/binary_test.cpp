// What the built library and command are linked with, and what the library
// offers to others. Reads them with readelf and nm, as anyone could.
#include <gmock/gmock.h>
#include <stdio.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

namespace logpjit::architecture {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAreArray;

/// Lines a command prints; the test fails when it does.
std::vector<std::string> lines_of(const std::string& command) {
  std::vector<std::string> lines;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    ADD_FAILURE() << "could not run " << command;
    return lines;
  }
  char* line = nullptr;
  std::size_t capacity = 0;
  while (getline(&line, &capacity, pipe) > 0) {
    lines.emplace_back(line);
    if (lines.back().ends_with('\n')) lines.back().pop_back();
  }
  free(line);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return lines;
}

/// "libm.so.6", ... : what the loader must find before the file can be used.
std::vector<std::string> needed_by(const std::string& file) {
  static const std::regex needed(R"(\(NEEDED\).*\[(.*)\])");
  std::vector<std::string> names;
  for (const std::string& line : lines_of("readelf -W -d '" + file + "'")) {
    std::smatch match;
    if (std::regex_search(line, match, needed)) names.push_back(match[1]);
  }
  return names;
}

/// The C++ run-time system and the project itself, or a sanitizer's.
bool is_expected(const std::string& library) {
  static const std::regex expected(
      R"((libstdc\+\+|libgcc_s|libm|libc|libdl|libpthread|librt|ld-linux.*))"
      R"(\.so.*|liblogpjit\.so.*|lib[a-z]+san\.so.*)");
  return std::regex_match(library, expected);
}

class Binary : public testing::TestWithParam<const char*> {};

TEST_P(Binary, NeedsNothingButTheCppRuntime) {
  std::vector<std::string> needed = needed_by(GetParam());
  EXPECT_THAT(needed, Contains(StartsWith("libc.so")))
      << "readelf's output was not understood";
  needed.erase(std::remove_if(needed.begin(), needed.end(), is_expected),
               needed.end());
  EXPECT_THAT(needed, IsEmpty())
      << "drivers and compilers are opened at run time, never linked";
}

TEST_P(Binary, NeedsNoDriverCompilerOrLlvm) {
  for (const char* name : {"libcuda", "libcudart", "libnvrtc", "libnccl",
                           "libclang", "libLLVM", "libboost"}) {
    EXPECT_THAT(needed_by(GetParam()), Not(Contains(StartsWith(name))));
  }
}

INSTANTIATE_TEST_SUITE_P(Built, Binary,
                         testing::Values(LOGPJIT_LIBRARY, LOGPJIT_COMMAND));

/// Demangled names of what the library defines for others.
std::vector<std::string> exported() {
  static const std::regex symbol("^[0-9a-f]+ [A-Za-z] (.*)$");
  std::vector<std::string> names;
  const std::string command = "nm -D -C --defined-only '" LOGPJIT_LIBRARY "'";
  for (const std::string& line : lines_of(command)) {
    std::smatch match;
    if (std::regex_match(line, match, symbol)) names.push_back(match[1]);
  }
  return names;
}

TEST(Exports, AreThePublicInterface) {
  const std::vector<std::string> names = exported();
  EXPECT_THAT(names, Contains(StartsWith("logpjit::Runtime::Runtime(")));
  EXPECT_THAT(names, Contains("typeinfo for logpjit::Error"));
}

TEST(Exports, AreTheCInterfaceAndTheNamespaceOnly) {
  static const std::regex own(
      "(logpjit_[a-z_]+|((typeinfo|typeinfo name|vtable) for )?logpjit::.*)");
  for (const std::string& name : exported()) {
    EXPECT_TRUE(std::regex_match(name, own)) << name;
  }
}

TEST(Exports, AreWhatTheCHeaderDeclares) {
  static const std::regex declared("LOGPJIT_C_API[^;(]*?\\b(logpjit_\\w+)\\(");
  std::vector<std::string> wanted;
  for (const char* name : {"logpjit.h", "logpjit_shards.h"}) {
    std::ifstream in(LOGPJIT_C_HEADERS + std::string(name));
    const std::string header{std::istreambuf_iterator<char>(in), {}};
    std::sregex_iterator match(header.begin(), header.end(), declared);
    for (; match != std::sregex_iterator(); ++match) {
      wanted.push_back((*match)[1]);
    }
  }
  std::vector<std::string> found;
  for (const std::string& name : exported()) {
    if (name.starts_with("logpjit_")) found.push_back(name);
  }
  EXPECT_GT(wanted.size(), 25u) << "the headers were not understood";
  EXPECT_THAT(found, UnorderedElementsAreArray(wanted));
}

TEST(Exports, HoldNoLibraryOfOthersAndNoInside) {
  for (const std::string& name : exported()) {
    for (const char* foreign :
         {"fmt::", "nlohmann::", "boost::", "CLI::", "make_fcontext",
          "jump_fcontext", "XXH", "logpjit::cache::", "logpjit::generator::",
          "logpjit::tuning::", "logpjit::runtime::"}) {
      EXPECT_THAT(name, Not(StartsWith(foreign)))
          << "another copy in the same process would clash with it";
    }
  }
}

}  // namespace
}  // namespace logpjit::architecture
