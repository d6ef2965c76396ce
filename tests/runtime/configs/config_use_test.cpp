// Tuned configurations in a running engine: counted, written down, harmless.
#include "runtime/config_use.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "logpjit/error.hpp"
#include "runtime/device_features.hpp"
#include "runtime/engine.hpp"
#include "tests/support/device/fake_compiler.hpp"
#include "tests/support/device/null_device.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const LaunchConfig kTuned{{"block", 128}, {"flight", 2}, {"min_blocks", 8}};

class ConfigsInEngine : public ::testing::Test {
 protected:
  ConfigsInEngine() {
    spec_.vocab = 49152;
    options_.cache_directory = folder_.path() / "cache";
    options_.log = [this](const std::string& line) { log_.push_back(line); };
  }

  void store(std::int64_t rows, const LaunchConfig& config = kTuned) {
    cache::ConfigStore store(options_.cache_directory, cache::Role::kUser, {});
    ASSERT_TRUE(store.append(
        {{.spec = TunedShape{spec_, rows}.text(),
          .device = device_features(testing::NullDevice().device_info),
          .config = config.text(),
          .time_us = 10,
          .spread = 0.01,
          .measured_with = {{"templates", template_digest(spec_, config)}}}}));
  }

  Engine& engine() {
    if (!engine_) {
      auto device = std::make_unique<testing::NullDevice>();
      device_ = device.get();
      auto compiler = std::make_unique<testing::FakeCompiler>();
      compiler->on_compile = on_compile_;
      compiler->on_spill = on_spill_;
      engine_ = std::make_unique<Engine>(options_, std::move(device),
                                         std::move(compiler));
    }
    return *engine_;
  }

  void launch(std::int64_t rows) {
    const int argument = 0;
    engine().program(spec_, nullptr).launch(rows, nullptr, argument);
  }

  const testing::TemporaryDirectory folder_;
  Options options_;
  KernelSpec spec_;
  std::vector<std::string> log_;
  std::function<void(const generator::Source&, const std::string&)> on_compile_;
  std::function<std::int32_t(const generator::Source&)> on_spill_;
  testing::NullDevice* device_ = nullptr;
  std::unique_ptr<Engine> engine_;
};

TEST_F(ConfigsInEngine, AreUsedAndCounted) {
  store(64);
  launch(64);
  launch(64);
  launch(65);
  launch(100000);
  const Counters counters = engine().counters();
  EXPECT_EQ(counters.exact_configs, 2u);
  EXPECT_EQ(counters.nearest_configs, 1u);
  EXPECT_EQ(counters.default_configs, 1u);
  EXPECT_EQ(counters.other_device_configs, 0u);
  const auto launches = device_->launches();
  EXPECT_EQ(launches[0].shape.block, 128u);
  EXPECT_EQ(launches[2].shape.block, 128u);
  EXPECT_NE(launches[3].shape.block, 128u);
  const Kernel kernel(&engine().prepare(spec_));
  EXPECT_EQ(kernel.config(64), kTuned);
  EXPECT_EQ(kernel.config_source(64), ConfigSource::kExact);
  EXPECT_EQ(kernel.config_source(65), ConfigSource::kNearest);
}

TEST_F(ConfigsInEngine, OneConfigurationIsLoadedOnce) {
  store(64);
  launch(64);
  const auto loads = device_->loads();
  std::set<std::string> configs;
  for (const RowChoice& choice : engine().choices(spec_)) {
    configs.insert(choice.config.text());
  }
  EXPECT_EQ(static_cast<std::size_t>(loads), configs.size());
}

TEST_F(ConfigsInEngine, OneThatCannotBeBuiltFailsNobody) {
  store(64);
  on_compile_ = [](const generator::Source& source, const std::string&) {
    if (source.config == kTuned) {
      throw Error(ErrorCode::kCompileFailed, "on purpose");
    }
  };
  launch(64);
  EXPECT_EQ(engine().counters().default_configs, 1u);
  EXPECT_THAT(log_, ElementsAre(HasSubstr("on purpose")));
}

/// As one may that was measured for rows of another length.
TEST_F(ConfigsInEngine, OneThatSpillsIsNotUsed) {
  store(64);
  on_spill_ = [](const generator::Source& source) {
    return source.config == kTuned ? 24 : 0;
  };
  launch(64);
  EXPECT_EQ(engine().counters().default_configs, 1u);
  EXPECT_THAT(log_, ElementsAre(HasSubstr("spills 24 bytes")));
}

TEST_F(ConfigsInEngine, DefaultsAreUsedWhateverTheySpill) {
  on_spill_ = [](const generator::Source&) { return 24; };
  launch(64);
  EXPECT_EQ(engine().counters().default_configs, 1u);
  // Those that were the fastest, too.
  engine_.reset();
  store(64,
        default_choices(spec_, testing::NullDevice().device_info)[1].config);
  launch(64);
  EXPECT_EQ(engine().counters().exact_configs, 1u);
  EXPECT_THAT(log_, ElementsAre());
}

TEST_F(ConfigsInEngine, MissesAreWrittenDownOnce) {
  options_.record_misses = folder_.path() / "misses";
  store(64);
  for (const std::int64_t rows : {64, 70, 100, 128, 3000}) launch(rows);
  std::ifstream file(options_.record_misses);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  EXPECT_THAT(lines, ElementsAre((TunedShape{spec_, 128}.text()),
                                 (TunedShape{spec_, 4096}.text())));
}

TEST_F(ConfigsInEngine, MissesThatCannotBeWrittenAreOneWarning) {
  options_.record_misses = folder_.path() / "no" / "folder";
  launch(1);
  launch(100);
  EXPECT_THAT(log_, ElementsAre(HasSubstr("not recorded")));
}

TEST_F(ConfigsInEngine, FirstCallInACaptureIsLogged) {
  engine();
  device_->capturing = true;
  launch(1);
  launch(1);
  EXPECT_THAT(log_, ElementsAre(HasSubstr("stream capture")));
}

TEST_F(ConfigsInEngine, DamagedLineIsNamedAndTheRestUsed) {
  store(64);
  std::ofstream(*options_.cache_directory / "configs.jsonl", std::ios::app)
      << "{\"v\": 1, \"spec\"\n";
  launch(64);
  EXPECT_EQ(engine().counters().exact_configs, 1u);
  EXPECT_THAT(log_, ElementsAre(HasSubstr("configs.jsonl:2")));
}

}  // namespace
}  // namespace logpjit::runtime
