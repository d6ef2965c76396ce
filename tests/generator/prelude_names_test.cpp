// The three preludes offer the same names.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "generator/content.hpp"

namespace logpjit::generator {
namespace {

namespace fs = std::filesystem;

using Names = std::set<std::string>;

// Serves device.h itself; a template that names it does not pass the scan.
const std::string kInner = "shared_address";

const fs::path kPreludes = fs::path(LOGPJIT_SOURCE_DIR) / "templates/prelude";

std::string without_comments(const std::string& text) {
  return std::regex_replace(text, std::regex("//[^\n]*"), "");
}

std::string prelude(const std::string& name) {
  return without_comments(read_content(kPreludes / name));
}

/// What the first group of `pattern` matches, everywhere in `text`.
Names matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  Names names;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end;
       match != end; ++match) {
    names.insert((*match)[1]);
  }
  return names;
}

Names functions(const std::string& text) {
  return matches(text, R"(LOGPJIT_DEVICE\s+[\w:*&<>\s]*?(\w+)\s*\()");
}
Names types(const std::string& text) {
  Names names = matches(text, R"(\bstruct\s+(?:alignas\(\d+\)\s+)?(\w+)\s*\{)");
  names.merge(matches(text, R"(\busing\s+(\w+)\s*=)"));
  return names;
}
Names macros(const std::string& text) {
  return matches(text, R"(#\s*define\s+(LOGPJIT_\w+))");
}

/// Those of `wanted` that are not in `offered`.
Names missing(const Names& wanted, const Names& offered) {
  Names names;
  std::ranges::set_difference(wanted, offered,
                              std::inserter(names, names.end()));
  return names;
}

/// What templates may use of device.h.
std::string offered_by_device() {
  return std::regex_replace(prelude("device.h"),
                            std::regex("LOGPJIT_DEVICE u32 " + kInner),
                            "u32 " + kInner);
}

TEST(PreludeNames, ThisTestSeesWhatDeviceOffers) {
  const std::string device = offered_by_device();
  EXPECT_TRUE(functions(device).contains("thread_index"));
  EXPECT_TRUE(functions(device).contains("shared_memory"));
  EXPECT_TRUE(functions(device).contains("bulk_load"));
  EXPECT_TRUE(types(device).contains("Word"));
  EXPECT_TRUE(types(device).contains("Mbarrier"));
  EXPECT_TRUE(types(device).contains("i64"));
  EXPECT_TRUE(macros(device).contains("LOGPJIT_CLUSTER_KERNEL"));
}

TEST(PreludeNames, ScanOffersExactlyDevicesNames) {
  const std::string device = offered_by_device();
  const std::string scan = prelude("scan.h");
  EXPECT_EQ(functions(scan), functions(device));
  EXPECT_EQ(types(scan), types(device));
  EXPECT_EQ(macros(scan), macros(device));
}

TEST(PreludeNames, HostOffersAllOfDevicesNames) {
  const std::string device = offered_by_device();
  const std::string host = prelude("host.h");
  EXPECT_EQ(missing(functions(device), functions(host)), Names{});
  EXPECT_EQ(missing(types(device), types(host)), Names{});
  EXPECT_EQ(missing(macros(device), macros(host)), Names{});
}

TEST(PreludeNames, DeclarationsOfScanAndDeviceAgree) {
  // Return type, name and parameter list, spaces aside.
  const std::string pattern = R"(LOGPJIT_DEVICE\s+([\w:*&<>\s]+\([^)]*\)))";
  const auto declarations = [&](const std::string& text) {
    Names tight;
    for (const std::string& each : matches(text, pattern)) {
      tight.insert(std::regex_replace(each, std::regex(R"(\s+)"), " "));
    }
    return tight;
  };
  EXPECT_EQ(declarations(prelude("scan.h")), declarations(offered_by_device()));
}

}  // namespace
}  // namespace logpjit::generator
