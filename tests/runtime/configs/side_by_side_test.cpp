// The kernels of one specification, one for each range of row counts, compiled
// together.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "logpjit/error.hpp"
#include "runtime/engine.hpp"
#include "tests/support/device/fake_compiler.hpp"
#include "tests/support/device/null_device.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::runtime {
namespace {

class SideBySide : public ::testing::Test {
 protected:
  SideBySide() {
    spec_.vocab = 151936;
    options_.cache_directory = folder_.path() / "cache";
  }

  Engine& make_engine() {
    auto device = std::make_unique<testing::NullDevice>();
    device->device_info.major = 12;  // nothing was measured there
    auto compiler = std::make_unique<testing::FakeCompiler>();
    compiler->on_compile = [this](const generator::Source& source,
                                  const std::string&) {
      {
        const std::lock_guard lock(mutex_);
        ++compiles_[source.config.text()];
        threads_.insert(std::this_thread::get_id());
      }
      on_compile_(source.config);
    };
    compiles_.clear();
    engine_ = std::make_unique<Engine>(options_, std::move(device),
                                       std::move(compiler));
    return *engine_;
  }

  std::set<std::string> configs() {
    std::set<std::string> all;
    for (const RowChoice& choice : engine_->choices(spec_)) {
      all.insert(choice.config.text());
    }
    return all;
  }

  /// Each configuration of the specification once.
  void expect_each_once() {
    std::set<std::string> compiled;
    for (const auto& [config, times] : compiles_) {
      EXPECT_EQ(times, 1) << config;
      compiled.insert(config);
    }
    EXPECT_EQ(compiled, configs());
  }

  const testing::TemporaryDirectory folder_;
  Options options_;
  KernelSpec spec_;
  std::function<void(const LaunchConfig&)> on_compile_ =
      [](const LaunchConfig&) {};
  std::mutex mutex_;
  std::map<std::string, int> compiles_;
  std::set<std::thread::id> threads_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(SideBySide, AllAfterTheFirst) {
  std::atomic<int> begun = 0;
  std::atomic<int> inside = 0;
  std::atomic<bool> were_together = false;
  on_compile_ = [&](const LaunchConfig&) {
    ++inside;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (begun++ > 0 && !were_together &&
           std::chrono::steady_clock::now() < end) {
      if (inside > 1) were_together = true;
      std::this_thread::yield();
    }
    --inside;
  };
  const Program& program = make_engine().prepare(spec_);
  EXPECT_EQ(inside, 0);
  EXPECT_TRUE(were_together);
  EXPECT_GT(threads_.size(), 1u);
  ASSERT_GT(configs().size(), 2u);
  expect_each_once();
  EXPECT_EQ(engine_->counters().compiled, configs().size());
  EXPECT_EQ(engine_->counters().loaded, configs().size());
  for (const Variant& variant : program.variants()) {
    EXPECT_EQ(variant.origin, cache::Origin::kCompiled);
    EXPECT_NE(variant.function, nullptr);
  }
}

TEST_F(SideBySide, CachedOnesNeedNoThread) {
  make_engine().prepare(spec_);
  threads_.clear();
  make_engine().prepare(spec_);
  EXPECT_TRUE(threads_.empty());
  EXPECT_EQ(engine_->counters().compiled, 0u);
  EXPECT_EQ(engine_->counters().disk_hits, configs().size());
}

TEST_F(SideBySide, WithoutCachesNothingIsCompiledTwice) {
  options_.caches_off = true;
  make_engine().prepare(spec_);
  expect_each_once();
}

/// Whichever it is: the caller hears of it, and nothing is tried twice.
TEST_F(SideBySide, OneThatFailsFailsTheCall) {
  make_engine();
  for (const std::string& bad : configs()) {
    SCOPED_TRACE(bad);
    options_.cache_directory = folder_.path() / bad;
    on_compile_ = [&](const LaunchConfig& config) {
      if (config.text() != bad) return;
      throw Error(ErrorCode::kCompileFailed, "on purpose");
    };
    try {
      make_engine().prepare(spec_);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCompileFailed);
      EXPECT_THAT(error.message(), ::testing::HasSubstr("on purpose"));
    }
    for (const auto& [config, times] : compiles_) EXPECT_EQ(times, 1) << config;
  }
}

TEST_F(SideBySide, NothingIsCompiledWhereThatIsForbidden) {
  options_.never_compile = true;
  try {
    make_engine().prepare(spec_);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotCached);
  }
  EXPECT_TRUE(compiles_.empty());
}

}  // namespace
}  // namespace logpjit::runtime
