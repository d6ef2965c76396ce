// What a device can launch, and what decides of it.
#include "runtime/config_rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "runtime/device_features.hpp"
#include "runtime/launch_table.hpp"
#include "tests/support/device/null_device.hpp"

namespace logpjit::runtime {
namespace {

DeviceInfo hopper() { return testing::NullDevice().device_info; }

TEST(ConfigRules, DefaultsBreakNone) {
  for (const char* op :
       {"logp", "logp+entropy", "squares", "logp_backward",
        "logp+entropy_backward", "logp_with_grad", "kl", "kl_backward"}) {
    for (const std::int64_t vocab : {1000, 32000, 50257, 151936}) {
      for (const DType dtype : {DType::kFp32, DType::kBf16}) {
        KernelSpec spec = *parse_op(op);
        spec.vocab = vocab;
        spec.logits = dtype;
        spec.other = dtype;
        if (spec.pass == Pass::kWithGrad && !fits_on_chip(spec, hopper())) {
          continue;
        }
        for (const RowChoice& choice : default_choices(spec, hopper())) {
          EXPECT_FALSE(broken_rule(spec, choice.config, hopper()))
              << spec.text() << ": " << choice.config.text();
        }
      }
    }
  }
}

/// Blocks that a multiprocessor is given at once.
std::int64_t rows_at_once(const LaunchConfig& config) {
  return std::int64_t{132} * config.at("min_blocks");
}

const LaunchConfig& default_of(const std::vector<RowChoice>& all,
                               std::int64_t rows) {
  return std::ranges::find_if(
             all, [&](const RowChoice& each) { return rows <= each.max_rows; })
      ->config;
}

/// A second wave of blocks that is nearly empty costs up to half.
TEST(DefaultChoices, FewRowsFillTheirLastWave) {
  KernelSpec spec = *parse_op("logp");
  spec.logits = DType::kBf16;
  for (const char* op : {"logp", "logp+entropy"}) {
    for (const std::int64_t vocab : {75968, 128256, 151936}) {
      spec.terms = parse_op(op)->terms;
      spec.vocab = vocab;
      const auto all = default_choices(spec, hopper());
      for (const std::int64_t rows : {200, 300, 400, 512}) {
        EXPECT_GE(rows_at_once(default_of(all, rows)), rows) << spec.text();
      }
      const std::int64_t wave = rows_at_once(default_of(all, 1024));
      EXPECT_GE(1024 % wave, wave / 2) << spec.text();
    }
  }
}

TEST(DefaultChoices, OneRowForEachClusterHasOneGroupOfGradientWarps) {
  KernelSpec spec = *parse_op("logp_with_grad");
  spec.logits = DType::kBf16;
  spec.vocab = 151936;
  const auto all = default_choices(spec, hopper());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].max_rows * all[0].config.at("cluster"), 132);
  EXPECT_EQ(all[0].config.at("gradient_groups"), 1);
  EXPECT_EQ(all[1].config.at("gradient_groups"), 2);
  const auto warps = [](const LaunchConfig& config) {
    return config.at("gradient_groups") * config.at("gradient_threads");
  };
  EXPECT_EQ(warps(all[0].config), warps(all[1].config));
  // A CPU has too few clusters for a second kernel.
  DeviceInfo cpu = hopper();
  cpu.id.kind = DeviceKind::kCpu;
  EXPECT_EQ(default_choices(spec, cpu).size(), 1u);
}

TEST(ConfigRules, EachHasItsName) {
  KernelSpec spec;
  spec.vocab = 151936;
  const LaunchConfig split{{"parts", 4}, {"split", 16}};
  EXPECT_FALSE(broken_rule(spec, split, hopper()));
  DeviceInfo ampere = hopper();
  ampere.major = 8;
  EXPECT_EQ(broken_rule(spec, split, ampere), ConfigRule::kCluster);
  EXPECT_EQ(broken_rule(spec, {{"parts", 1}, {"split", 16}}, hopper()),
            ConfigRule::kRow);
  EXPECT_EQ(broken_rule(spec, {{"block", 100}}, hopper()), ConfigRule::kDomain);
  EXPECT_EQ(broken_rule(spec, {}, hopper()), ConfigRule::kDomain);
  DeviceInfo small = hopper();
  small.shared_bytes_per_block = 1024;
  const LaunchConfig plain{{"block", 256}, {"flight", 4}, {"min_blocks", 4}};
  EXPECT_EQ(broken_rule(spec, plain, small), ConfigRule::kSharedMemory);
  EXPECT_EQ(name(ConfigRule::kSharedMemory), "shared_memory");
}

TEST(DeviceFeatures, H100AndH200Differ) {
  DeviceInfo h100 = hopper();
  h100.memory_gb_per_s = 3350;
  DeviceInfo h200 = hopper();
  h200.memory_gb_per_s = 4800;
  EXPECT_NE(device_features(h100), device_features(h200));
  EXPECT_TRUE(same_architecture(device_features(h100), device_features(h200)));
  DeviceInfo noisy = h200;
  noisy.memory_gb_per_s = 4810;
  EXPECT_EQ(device_features(noisy), device_features(h200));
}

TEST(DeviceFeatures, CpuAndGpuShareNothing) {
  DeviceInfo cpu;
  EXPECT_FALSE(
      same_architecture(device_features(cpu), device_features(hopper())));
}

}  // namespace
}  // namespace logpjit::runtime
