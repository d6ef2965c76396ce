// A GPU's clock, on an NVML that pretends beside the driver that does.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/cuda/nvml.hpp"
#include "tests/runtime/cuda/pretended_gpu.hpp"
#include "tests/support/fake_nvml/fake_nvml.hpp"
#include "tests/support/temporary_directory.hpp"

namespace logpjit::runtime::cuda {
namespace {

const std::filesystem::path kNvml = LOGPJIT_FAKE_NVML;
constexpr const char* kKnown = "0000:00:00.0";

testing::FakeNvml& nvml() {
  static testing::FakeNvml& instance = []() -> testing::FakeNvml& {
    void* library = dlopen(kNvml.c_str(), RTLD_NOW);
    auto* access = reinterpret_cast<testing::FakeNvmlAccess*>(
        dlsym(library, "logpjit_fake_nvml"));
    return *access();
  }();
  return instance;
}

class Clock : public ::testing::Test {
 protected:
  void SetUp() override { nvml() = {}; }
  void TearDown() override { EXPECT_EQ(nvml().users, 0); }

  static ClockState state() {
    return make_nvml_meter(kKnown, kNvml.parent_path())->read();
  }
};

TEST_F(Clock, ShareOfTheHighest) {
  EXPECT_EQ(state().share, 1);
  EXPECT_EQ(state().held_by, "");
  nvml().clock = 990;
  EXPECT_EQ(state().share, 0.5);
  EXPECT_EQ(state().held_by, "") << "idle, perhaps";
}

TEST_F(Clock, WhatHoldsItBackIsNamedTheWorstFirst) {
  nvml().reasons = 0x4;
  EXPECT_EQ(state().held_by, "the power cap");
  nvml().reasons = 0x8 | 0x4;
  EXPECT_EQ(state().held_by, "a hardware slowdown");
  nvml().reasons = 0x80 | 0x8;
  EXPECT_EQ(state().held_by, "the power brake");
  nvml().reasons = 0x40 | 0x80 | 0x8;
  EXPECT_EQ(state().held_by, "the temperature");
  nvml().reasons = 0x1 | 0x10 | 0x100;  // idle, in step, for a display
  EXPECT_EQ(state().held_by, "");
}

TEST_F(Clock, AClockThatSomebodySetIsNotHeldBack) {
  nvml().reasons = 0x2 | 0x4;
  EXPECT_EQ(state().held_by, "");
}

TEST_F(Clock, DevicesAskForTheirOwn) {
  fake().forget();
  fake().devices = {90, 90};
  nvml().clock = 990;
  const auto first = CudaDevice(driver(), 0).make_clock_meter();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->read().share, 0.5);
  EXPECT_EQ(CudaDevice(driver(), 1).make_clock_meter(), nullptr)
      << "NVML does not know it";
  fake().answers["cuDeviceGetPCIBusId"] = 1;
  EXPECT_EQ(CudaDevice(driver(), 0).make_clock_meter(), nullptr);
}

TEST_F(Clock, WithoutAnAnswerThereIsNoMeter) {
  for (const char* symbol : {"nvmlInit_v2", "nvmlDeviceGetMaxClockInfo"}) {
    nvml().answers = {{symbol, 3}};
    EXPECT_EQ(make_nvml_meter(kKnown, kNvml.parent_path()), nullptr) << symbol;
  }
  nvml().answers.clear();
  nvml().highest = 0;
  EXPECT_EQ(make_nvml_meter(kKnown, kNvml.parent_path()), nullptr);
}

TEST_F(Clock, AnswersThatFailAreFullSpeed) {
  const auto meter = make_nvml_meter(kKnown, kNvml.parent_path());
  nvml().clock = 100;
  nvml().reasons = 0x4;
  for (const char* symbol : {"nvmlDeviceGetClockInfo",
                             "nvmlDeviceGetCurrentClocksThrottleReasons"}) {
    nvml().answers = {{symbol, 15}};
    EXPECT_EQ(meter->read().share, 1) << symbol;
    EXPECT_EQ(meter->read().held_by, "") << symbol;
  }
}

}  // namespace
}  // namespace logpjit::runtime::cuda
