// Random tensors for timing, and what is looked at of their results.
#include "tuning/bench_data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/device/null_device.hpp"

namespace logpjit::tuning {
namespace {

class BenchData : public ::testing::Test {
 protected:
  BenchData() { device_.device_info.l2_bytes = 1; }
  testing::NullDevice device_;
};

TEST_F(BenchData, RandomLogitsAreNormalAndDiffer) {
  for (const DType dtype : {DType::kFp32, DType::kBf16, DType::kFp16}) {
    SCOPED_TRACE(name(dtype));
    const auto fetched = [&](unsigned seed) {
      const auto tensors = random_logits(device_, dtype, 3, 50000, seed);
      const FetchedRows rows = fetch_rows(device_, tensors.front(), 3);
      std::vector<std::vector<double>> values(3);
      for (std::int64_t row = 0; row < 3; ++row) {
        rows.problem.logits(row, values[static_cast<std::size_t>(row)]);
      }
      return values;
    };
    const auto one = fetched(1);
    EXPECT_EQ(one, fetched(1));
    EXPECT_NE(one, fetched(2));
    EXPECT_NE(one[0], one[1]);
    double sum = 0;
    double squares = 0;
    for (const double value : one[2]) {
      sum += value;
      squares += value * value;
    }
    EXPECT_NEAR(sum / 50000, 0, 0.1);
    EXPECT_NEAR(squares / 50000, 16, 0.5);
    EXPECT_GT(*std::ranges::max_element(one[2]), 12);
  }
}

TEST_F(BenchData, WatchedBytesArePoisonedAndFetchedInOrder) {
  const std::int64_t rows[] = {100, 8};
  const std::int64_t few[] = {2};
  std::vector<std::byte> content(100 * 8 * 4);
  for (std::size_t i = 0; i < content.size(); ++i) {
    content[i] = static_cast<std::byte>(i / 32);  // the row
  }
  const DeviceTensor matrix = upload(device_, DType::kFp32, rows, content);
  const std::vector<std::byte> eight(8, std::byte{200});
  const DeviceTensor vector = upload(device_, DType::kFp32, few, eight);
  WatchedBytes watched(device_);
  watched.add_all({&vector, 1});
  watched.add_sampled_rows(matrix);
  const auto before = watched.fetch();
  ASSERT_EQ(before.size(), 8 + 16 * 32u);
  EXPECT_EQ(before[7], std::byte{200});
  EXPECT_EQ(before[8], std::byte{0});
  EXPECT_EQ(before.back(), std::byte{99});
  for (std::size_t i = 8 + 32; i < before.size(); i += 32) {
    EXPECT_GT(before[i], before[i - 1]);  // rows that differ, in order
  }
  watched.poison();
  for (const std::byte byte : watched.fetch()) {
    EXPECT_EQ(byte, std::byte{kPoison});
  }
  const auto all = download(device_, matrix);
  EXPECT_EQ(std::ranges::count(all, std::byte{kPoison}), 16 * 32);
}

TEST_F(BenchData, AllRowsAreWatchedWhereThereAreFew) {
  for (const std::int64_t count : {1, 2, 15, 16, 17}) {
    const std::int64_t rows[] = {count, 4};
    const DeviceTensor matrix = poisoned_tensor(device_, DType::kBf16, rows);
    WatchedBytes watched(device_);
    watched.add_sampled_rows(matrix);
    EXPECT_EQ(watched.fetch().size(),
              static_cast<std::size_t>(std::min<std::int64_t>(count, 16)) * 8);
  }
}

}  // namespace
}  // namespace logpjit::tuning
