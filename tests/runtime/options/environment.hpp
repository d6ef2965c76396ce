// A process environment and a scratch directory of a test's own.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "logpjit/options.hpp"

namespace logpjit {

/// Starts each test with no variable at all, as `env -i` does, and in an empty
/// working directory that is gone afterwards.
class EnvironmentTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(clearenv(), 0);
    std::string name =
        std::filesystem::temp_directory_path() / "logpjit-options-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    scratch_ = std::filesystem::canonical(name);
    before_ = std::filesystem::current_path();
    std::filesystem::create_directory(scratch_ / "cwd");
    std::filesystem::current_path(scratch_ / "cwd");
  }

  void TearDown() override {
    EXPECT_TRUE(std::filesystem::is_empty(scratch_ / "cwd"))
        << "something was created in the working directory";
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(scratch_);
  }

  static void set(
      std::initializer_list<std::pair<const char*, std::string>> variables) {
    for (const auto& [name, value] : variables) {
      ASSERT_EQ(setenv(name, value.c_str(), 1), 0);
    }
  }

  /// A directory that exists, below the scratch directory.
  std::filesystem::path directory(const std::string& name) const {
    std::filesystem::create_directories(scratch_ / name);
    return scratch_ / name;
  }

  std::filesystem::path file(const std::string& name) const {
    std::ofstream(scratch_ / name) << "not a directory";
    return scratch_ / name;
  }

  /// Options from the environment as set; what was logged is in `lines_`.
  Options read() {
    lines_.clear();
    return Options::from_environment(
        [this](const std::string& line) { lines_.push_back(line); });
  }

  std::filesystem::path scratch_;
  std::vector<std::string> lines_;

 private:
  std::filesystem::path before_;
};

}  // namespace logpjit
