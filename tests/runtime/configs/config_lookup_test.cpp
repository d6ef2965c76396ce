// Which measured configuration serves which call.
#include "runtime/config_lookup.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/device_features.hpp"
#include "runtime/shipped_configs.hpp"

namespace logpjit::runtime {
namespace {

DeviceInfo gpu() {
  DeviceInfo device;
  device.id = {DeviceKind::kCuda, 0};
  device.name = "one name";
  device.major = 9;
  device.multiprocessors = 132;
  device.l2_bytes = std::int64_t{60} << 20;
  device.shared_bytes_per_block = 227 << 10;
  device.memory_gb_per_s = 4800;
  return device;
}

KernelSpec logp(std::int64_t vocab = 151936) {
  KernelSpec spec;
  spec.vocab = vocab;
  return spec;
}

const LaunchConfig kDefault{{"block", 256}, {"flight", 4}, {"min_blocks", 4}};
const LaunchConfig kTuned{{"block", 512}, {"flight", 2}, {"min_blocks", 4}};
const LaunchConfig kOther{{"block", 128}, {"flight", 2}, {"min_blocks", 8}};

TunedConfig record(std::int64_t rows, const LaunchConfig& config = kTuned,
                   const KernelSpec& spec = logp(),
                   const DeviceInfo& device = gpu()) {
  return {.shape = {.spec = spec, .rows = rows},
          .config = config,
          .device = device_features(device),
          .templates = template_digest(spec, config)};
}

RowChoice among(const std::vector<RowChoice>& choices, std::int64_t rows) {
  for (const RowChoice& choice : choices) {
    if (rows <= choice.max_rows) return choice;
  }
  ADD_FAILURE() << "no choice for " << rows << " rows";
  return {};
}

RowChoice at(const std::vector<TunedConfig>& records, std::int64_t rows,
             const DeviceInfo& device = gpu(),
             const KernelSpec& spec = logp()) {
  return among(tuned_choices(spec, device, records, {{.config = kDefault}}),
               rows);
}

TEST(TunedShape, TextIsReadBack) {
  for (const char* op : {"logp", "logp+entropy_backward", "kl", "kl_backward",
                         "logp_with_grad", "argmax"}) {
    TunedShape shape{.spec = *parse_op(op), .rows = 8192};
    shape.spec.vocab = 50257;
    shape.spec.aligned = false;
    shape.spec.temperature = true;
    EXPECT_EQ(TunedShape::parse(shape.text()), shape) << shape.text();
  }
  for (const char* text : {"", " n=4", "n=4", "family=1 op=logp n=",
                           "family=1 op=logp logits=bf16 n=4"}) {
    EXPECT_FALSE(TunedShape::parse(text)) << text;
  }
  const std::string good = TunedShape{.spec = logp(), .rows = 4}.text();
  EXPECT_FALSE(TunedShape::parse(good + "x"));
  EXPECT_FALSE(TunedShape::parse("family=9" + good.substr(8)));
  std::string zero = good;
  zero.back() = '0';
  EXPECT_FALSE(TunedShape::parse(zero));
}

TEST(ConfigLookup, WithoutRecordsTheDefaultsStay) {
  const std::vector<RowChoice> defaults{{.max_rows = 33, .config = kOther},
                                        {.config = kDefault}};
  const auto choices = tuned_choices(logp(), gpu(), {}, defaults);
  for (const std::int64_t rows : {1, 33, 34, 1 << 20}) {
    const auto& expected = rows <= 33 ? kOther : kDefault;
    for (const RowChoice& choice : choices) {
      if (rows > choice.max_rows) continue;
      EXPECT_EQ(choice.config, expected) << rows;
      EXPECT_EQ(choice.source, ConfigSource::kDefault);
      break;
    }
  }
  EXPECT_EQ(choices.back().max_rows, INT64_MAX);
}

TEST(ConfigLookup, ExactThenNearestThenDefault) {
  const std::vector<TunedConfig> records{record(64)};
  EXPECT_EQ(at(records, 64).source, ConfigSource::kExact);
  EXPECT_EQ(at(records, 64).config, kTuned);
  EXPECT_EQ(at(records, 65).source, ConfigSource::kNearest);
  EXPECT_EQ(at(records, 63).source, ConfigSource::kNearest);
  EXPECT_EQ(at(records, 16).config, kTuned);
  EXPECT_EQ(at(records, 256).config, kTuned);
  EXPECT_EQ(at(records, 15).source, ConfigSource::kDefault);
  EXPECT_EQ(at(records, 257).config, kDefault);
}

TEST(ConfigLookup, WhereTheDefaultWasBestOtherRowsHaveTheirOwnDefault) {
  const std::vector<RowChoice> defaults{{.max_rows = 66, .config = kOther},
                                        {.config = kDefault}};
  const std::vector<TunedConfig> records{record(64, kOther)};
  const auto choices = tuned_choices(logp(), gpu(), records, defaults);
  for (const std::int64_t rows : {16, 63, 64, 65, 66, 67, 128, 256}) {
    const RowChoice choice = among(choices, rows);
    EXPECT_EQ(choice.config, rows <= 66 ? kOther : kDefault) << rows;
    EXPECT_NE(choice.source, ConfigSource::kDefault) << rows;
  }
  // Another winner is taken to be better than the default there, too.
  const auto tuned = tuned_choices(logp(), gpu(), {{record(64)}}, defaults);
  EXPECT_EQ(among(tuned, 65).config, kTuned);
  EXPECT_EQ(among(tuned, 128).config, kTuned);
}

TEST(ConfigLookup, BetweenTwoRecordsTheNearerInOctavesServes) {
  const std::vector<TunedConfig> records{record(1024, kOther), record(256)};
  EXPECT_EQ(at(records, 511).config, kTuned);
  EXPECT_EQ(at(records, 513).config, kOther);
}

TEST(ConfigLookup, ManyRowsAreAllAlike) {
  const std::vector<TunedConfig> records{record(8448)};
  EXPECT_EQ(at(records, std::int64_t{1} << 40).config, kTuned);
}

TEST(ConfigLookup, OtherVocabularyIsNearest) {
  const std::vector<TunedConfig> records{record(64, kOther, logp(32000)),
                                         record(64, kTuned, logp(152064))};
  const RowChoice choice = at(records, 64);
  EXPECT_EQ(choice.source, ConfigSource::kNearest);
  EXPECT_EQ(choice.config, kTuned);
  EXPECT_EQ(at({record(64, kOther, logp(1000))}, 64).source,
            ConfigSource::kDefault);
}

TEST(ConfigLookup, OtherDtypeOrTermsAreNoMatch) {
  KernelSpec fp32 = logp();
  fp32.logits = DType::kFp32;
  KernelSpec entropy = logp();
  entropy.terms = Terms::kEntropy;
  for (const KernelSpec& spec : {fp32, entropy}) {
    EXPECT_EQ(at({record(64, kTuned, spec)}, 64).source,
              ConfigSource::kDefault);
  }
}

TEST(ConfigLookup, ChangedTemplatesAreNotExact) {
  TunedConfig old = record(64);
  old.templates = "0";
  EXPECT_EQ(at({old}, 64).source, ConfigSource::kNearest);
  EXPECT_EQ(at({old}, 64).config, kTuned);
}

TEST(ConfigLookup, NamesDoNotMatterSiliconDoes) {
  DeviceInfo renamed = gpu();
  renamed.name = "another name";
  renamed.software = "another driver";
  EXPECT_EQ(at({record(64)}, 64, renamed).source, ConfigSource::kExact);
  DeviceInfo slice = gpu();
  slice.multiprocessors = 60;
  DeviceInfo slower = gpu();
  slower.memory_gb_per_s = 3350;
  for (const DeviceInfo& device : {slice, slower}) {
    EXPECT_EQ(at({record(64)}, 64, device).source, ConfigSource::kOtherDevice);
  }
  DeviceInfo older = gpu();
  older.major = 8;
  EXPECT_EQ(at({record(64)}, 64, older).source, ConfigSource::kDefault);
}

TEST(ConfigLookup, OwnRecordsComeBeforeShippedOnes) {
  TunedConfig shipped = record(64, kOther);
  shipped.shipped = true;
  EXPECT_EQ(at({shipped, record(64)}, 64).config, kTuned);
  EXPECT_FALSE(at({shipped, record(64)}, 64).shipped);
  EXPECT_TRUE(at({shipped}, 64).shipped);
  // An exact shipped one is better than a near one of one's own.
  EXPECT_EQ(at({shipped, record(128)}, 64).config, kOther);
}

TEST(ConfigLookup, WhatCannotBeLaunchedIsPassedOver) {
  DeviceInfo small = gpu();
  small.major = 8;
  KernelSpec spec = logp();
  const LaunchConfig split{{"parts", 4}, {"split", 16}};
  EXPECT_EQ(at({record(64, split, spec, small)}, 64, small).source,
            ConfigSource::kDefault);
  const LaunchConfig odd{{"block", 77}, {"flight", 4}, {"min_blocks", 4}};
  EXPECT_EQ(at({record(64, odd)}, 64).source, ConfigSource::kDefault);
}

TEST(ConfigLookup, RecordsThatCannotBeReadAreLeftOut) {
  cache::ConfigRecord good{.spec = TunedShape{logp(), 64}.text(),
                           .device = {},
                           .config = "block=512",
                           .time_us = 1,
                           .spread = 0,
                           .measured_with = {}};
  cache::ConfigRecord no_shape = good;
  no_shape.spec = "anything";
  cache::ConfigRecord no_config = good;
  no_config.config = "block";
  const cache::ConfigRecord all[] = {no_shape, good, no_config};
  EXPECT_EQ(read_records(all, false).size(), 1u);
}

TEST(ConfigLookup, DistanceOfSizes) {
  EXPECT_EQ(log_distance(64, 64), 0);
  EXPECT_EQ(log_distance(64, 128), 65536);
  EXPECT_EQ(log_distance(std::int64_t{1} << 62, 1), 62 * 65536);
  EXPECT_EQ(log_distance(1, std::int64_t{1} << 62), 62 * 65536);
}

TEST(ShippedConfigs, AllCanBeRead) {
  const auto records = shipped_configs();
  EXPECT_EQ(read_records(records, true).size(), records.size());
}

TEST(MeasuredConfigs, OfTheArchitectureOnceEach) {
  DeviceInfo smaller = gpu();
  smaller.multiprocessors = 78;
  DeviceInfo older = gpu();
  older.major = 8;
  DeviceInfo nobody;  // an architecture alone
  nobody.id.kind = DeviceKind::kCuda;
  nobody.major = 9;
  nobody.shared_bytes_per_block = 227 << 10;
  const std::vector<TunedConfig> records{
      record(64), record(8192), record(1, kOther, logp(), smaller),
      record(64, kDefault, logp(), older), record(64, kDefault, logp(1000))};
  EXPECT_EQ(measured_configs(logp(), nobody, records),
            (std::vector{kTuned, kOther}));
  EXPECT_TRUE(measured_configs(*parse_op("kl"), nobody, records).empty());
}

}  // namespace
}  // namespace logpjit::runtime
