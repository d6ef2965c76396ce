// What is worth trying.
#include "tuning/search_space.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "generator/spec_text.hpp"
#include "runtime/config_rules.hpp"
#include "runtime/launch_table.hpp"
#include "tests/support/device/null_device.hpp"
#include "tuning/model_presets.hpp"

namespace logpjit::tuning {
namespace {

using ::testing::Contains;
using ::testing::Not;

DeviceInfo gpu() {
  auto device = testing::NullDevice().device_info;
  device.minor = 0;
  return device;
}

DeviceInfo cpu() {
  DeviceInfo device;
  device.multiprocessors = 2;
  device.shared_bytes_per_block = 227 << 10;
  return device;
}

runtime::TunedShape shape(const char* op, std::int64_t vocab = 151936,
                          std::int64_t rows = 8192) {
  runtime::TunedShape made{.spec = *parse_timed_op(op), .rows = rows};
  made.spec.vocab = vocab;
  return made;
}

TEST(SearchSpace, DefaultFirstAndEveryCandidateLegal) {
  for (const std::string& op : default_ops()) {
    for (const DeviceInfo& device : {gpu(), cpu()}) {
      for (const std::int64_t rows : {1, 64, 8192}) {
        const auto subject = shape(op.c_str(), 151936, rows);
        const SearchSpace space = search_space(subject, device);
        ASSERT_FALSE(space.configs.empty());
        EXPECT_EQ(space.configs.front(), default_config(subject, device));
        EXPECT_GE(space.configs.size(), 4u) << op;
        std::set<std::string> texts;
        for (const LaunchConfig& config : space.configs) {
          EXPECT_FALSE(runtime::broken_rule(subject.spec, config, device))
              << op << ": " << config.text();
          EXPECT_TRUE(texts.insert(config.text()).second) << config.text();
        }
      }
    }
  }
}

TEST(SearchSpace, RowsAreSplitOnlyWhereThereAreFew) {
  const LaunchConfig split{{"parts", 4}, {"split", 16}};
  EXPECT_THAT(search_space(shape("logp", 151936, 8), gpu()).configs,
              Contains(split));
  const SearchSpace many = search_space(shape("logp"), gpu());
  EXPECT_THAT(many.configs, Not(Contains(split)));
  EXPECT_GT(many.rejected.at("many_rows"), 0);
}

TEST(SearchSpace, WithoutADeviceManyRowsMayBeFew) {
  DeviceInfo unknown = gpu();
  unknown.multiprocessors = 0;
  const LaunchConfig split{{"parts", 4}, {"split", 16}};
  EXPECT_THAT(search_space(shape("logp"), unknown).configs, Contains(split));
}

TEST(SearchSpace, RejectionsAreCountedByRule) {
  const SearchSpace space = search_space(shape("logp_backward"), gpu());
  EXPECT_GT(space.rejected.at("residency"), 0);
  EXPECT_GT(space.rejected.at("registers"), 0);
  const SearchSpace fused = search_space(shape("logp_with_grad"), gpu());
  EXPECT_GT(fused.rejected.at("row"), 0);
  const SearchSpace small = search_space(shape("logp", 500), gpu());
  EXPECT_GT(small.rejected.at("idle_threads"), 0);
  const SearchSpace host = search_space(shape("logp"), cpu());
  EXPECT_GT(host.rejected.at("no_effect"), 0);
}

TEST(SearchSpace, HintsThatGiveTheSameCodeAreTriedOnce) {
  const SearchSpace space = search_space(shape("kl_backward"), gpu());
  EXPECT_GT(space.rejected.at("no_effect"), 0);
  std::set<std::tuple<int, int, int>> seen;
  for (const LaunchConfig& config : space.configs) {
    const int block = config.at("block");
    const int registers =
        std::min(255, 65536 / (block * config.at("min_blocks"))) / 8;
    EXPECT_TRUE(seen.emplace(block, config.at("flight"), registers).second)
        << config.text();
  }
}

TEST(SearchSpace, OldGpusGetNoClusters) {
  DeviceInfo ampere = gpu();
  ampere.major = 8;
  for (const LaunchConfig& config :
       search_space(shape("logp", 151936, 8), ampere).configs) {
    EXPECT_FALSE(config.find("split")) << config.text();
  }
}

TEST(SearchSpace, SpreadStartsWithTheDefaultAndReachesFar) {
  const SearchSpace space = search_space(shape("logp_backward"), gpu());
  const auto chosen = spread_out(space.configs, 24);
  ASSERT_EQ(chosen.size(), 24u);
  EXPECT_EQ(chosen.front(), space.configs.front());
  EXPECT_EQ(spread_out(space.configs, 24), chosen);
  double farthest = 0;
  for (const LaunchConfig& config : chosen) {
    farthest = std::max(farthest, distance(config, chosen.front()));
  }
  EXPECT_EQ(farthest, distance(space.configs.back(), space.configs.front()));
  EXPECT_EQ(spread_out(space.configs, 1).size(), 1u);
  EXPECT_TRUE(spread_out({}, 5).empty());
}

TEST(SearchSpace, NeighboursAreNewAndNear) {
  const SearchSpace space = search_space(shape("logp_backward"), gpu());
  const auto known = spread_out(space.configs, 24);
  const auto near = neighbours(space.configs, known[5], known, 8);
  ASSERT_EQ(near.size(), 8u);
  for (const LaunchConfig& config : near) {
    EXPECT_EQ(std::count(known.begin(), known.end(), config), 0);
  }
  EXPECT_LE(distance(near.front(), known[5]), distance(near.back(), known[5]));
}

TEST(ModelPresets, NamesAndNumbers) {
  const std::pair<const char*, std::int64_t> kNumbers[] = {
      {"qwen2.5", 151936}, {"qwen2.5-7b", 152064},  {"qwen3", 151936},
      {"Llama3", 128256},  {"gemma3", 262144},      {"GEMMA3-vision", 262208},
      {"gpt-oss", 201088}, {"deepseek-v3", 129280}, {"mistral", 131072},
      {"glm-4.5", 151552}};
  for (const auto& [model, vocab] : kNumbers) {
    ASSERT_TRUE(find_preset(model)) << model;
    EXPECT_EQ(find_preset(model)->vocab, vocab) << model;
  }
  EXPECT_FALSE(find_preset("qwen"));
  std::set<std::string_view> names;
  for (const ModelPreset& preset : model_presets()) {
    EXPECT_TRUE(names.insert(preset.name).second) << preset.name;
    EXPECT_GT(preset.vocab, 1000);
    // "owner/model" of the config.json that it is from.
    EXPECT_NE(preset.source.find('/'), std::string_view::npos) << preset.name;
  }
}

TEST(ModelPresets, ShapesOfShardsOnceEach) {
  const auto shapes = make_shapes({.ops = {*parse_timed_op("logp")},
                                   .dtypes = {DType::kBf16},
                                   .vocabs = {50257, 50257},
                                   .rows = {1, 64},
                                   .shards = {1, 2}});
  ASSERT_EQ(shapes.size(), 4u);
  EXPECT_EQ(shapes[0].spec.vocab, 50257);
  EXPECT_TRUE(shapes[0].spec.aligned);   // a single row
  EXPECT_FALSE(shapes[1].spec.aligned);  // 100514 bytes a row
  EXPECT_EQ(shapes[2].spec.vocab, 25129);
}

TEST(ModelPresets, ShapesAreThoseOfCallsInEveryDtype) {
  ShapeRequest request;
  request.dtypes = {DType::kFp32, DType::kBf16, DType::kFp16};
  request.vocabs = {1000};
  request.rows = {1, 64};
  for (const std::string& op : default_ops()) {
    request.ops.push_back(*parse_timed_op(op));
  }
  for (const runtime::TunedShape& shape : make_shapes(request)) {
    // Equal, and not in its text alone: calls are looked up by the value.
    EXPECT_EQ(shape.spec, generator::parse_spec_text(shape.spec.text()))
        << shape.spec.text();
  }
}

TEST(ModelPresets, DivergencesByDirection) {
  EXPECT_TRUE(parse_timed_op("kl_backward")->grad_b);
  EXPECT_FALSE(parse_timed_op("kl_backward")->grad_a);
  EXPECT_TRUE(parse_timed_op("kl_reverse_backward")->grad_a);
  EXPECT_FALSE(parse_timed_op("nonsense"));
}

}  // namespace
}  // namespace logpjit::tuning
