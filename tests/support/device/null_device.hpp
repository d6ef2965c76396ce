// A device that runs nothing and remembers everything.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "logpjit/error.hpp"
#include "runtime/device.hpp"

namespace logpjit::testing {

/// What NullDevice loads: the image as it came.
class NullFunction final : public runtime::Function {
 public:
  explicit NullFunction(cache::Image image) : image_(std::move(image)) {}
  const cache::Image& image() const { return image_; }

 private:
  cache::Image image_;
};

class NullBuffer final : public runtime::Buffer {
 public:
  explicit NullBuffer(std::size_t bytes) {
    data_ = ::operator new(bytes, kAlignment);
    size_ = bytes;
  }
  ~NullBuffer() override { ::operator delete(data_, kAlignment); }

 private:
  static constexpr std::align_val_t kAlignment{256};
};

class NullEvent final : public runtime::Event {};

/// Memory is the host's, launches are recorded, time stands still unless
/// `on_time` says otherwise. Safe to share between threads, as long as the
/// public members are set before.
class NullDevice final : public runtime::Device {
 public:
  struct Launch {
    const NullFunction* function = nullptr;
    runtime::LaunchShape shape;
    CUstream_st* stream = nullptr;
    std::vector<std::byte> arguments;
  };

  NullDevice() {
    device_info.id = {DeviceKind::kCuda, 0};
    device_info.name = "null device";
    device_info.software = "null";
    device_info.major = 9;
    device_info.multiprocessors = 132;
    device_info.l2_bytes = std::int64_t{50} << 20;
    device_info.shared_bytes_per_block = 227 << 10;
    device_info.shared_bytes_per_multiprocessor = 228 << 10;
    device_info.memory_bytes = std::int64_t{1} << 30;
  }

  /// Change before use to be another device.
  DeviceInfo device_info;
  std::string device_target = "sm_90a";
  /// Called at each load; may throw to refuse an image.
  std::function<void(const cache::Image&)> on_load;
  /// Called at each launch after it is recorded; may write results or throw.
  std::function<void(const Launch&)> on_launch;
  /// Milliseconds of a replay, from the launches that one replay made.
  std::function<double(const std::vector<Launch>&)> on_time;

  /// How fast it runs; asked for after each round of measurements.
  std::function<runtime::ClockState()> on_clock;

  std::vector<Launch> launches() const {
    const std::lock_guard lock(mutex_);
    return launches_;
  }
  int loads() const {
    const std::lock_guard lock(mutex_);
    return loads_;
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    launches_.clear();
    loads_ = 0;
  }

  const DeviceInfo& info() const override { return device_info; }
  std::string target() const override { return device_target; }

  std::unique_ptr<runtime::Function> load(
      const cache::Image& image,
      std::uint32_t /*dynamic_shared_bytes*/) override {
    {
      const std::lock_guard lock(mutex_);
      ++loads_;
    }
    if (on_load) on_load(image);
    return std::make_unique<NullFunction>(image);
  }

  void launch(const runtime::Function& function,
              const runtime::LaunchShape& shape, CUstream_st* stream,
              const void* arguments, std::size_t argument_bytes) override {
    const auto* from = static_cast<const std::byte*>(arguments);
    Launch launch{dynamic_cast<const NullFunction*>(&function),
                  shape,
                  stream,
                  {from, from + argument_bytes}};
    {
      const std::lock_guard lock(mutex_);
      launches_.push_back(launch);
    }
    if (on_launch) on_launch(launch);
  }

  std::unique_ptr<runtime::Buffer> allocate(std::size_t bytes) override {
    return std::make_unique<NullBuffer>(bytes);
  }
  void copy_in(void* to, const void* from, std::size_t bytes) override {
    copy(to, from, bytes, nullptr);
  }
  void copy_out(void* to, const void* from, std::size_t bytes) override {
    copy(to, from, bytes, nullptr);
  }
  void fill(void* to, std::uint8_t value, std::size_t bytes) override {
    if (bytes > 0) std::memset(to, value, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes,
            CUstream_st* /*stream*/) override {
    if (bytes > 0) std::memmove(to, from, bytes);
  }
  void synchronize() override {
    if (lost) throw Error(ErrorCode::kDriver, "the device is lost");
  }
  std::size_t free_bytes() const override {
    return static_cast<std::size_t>(device_info.memory_bytes);
  }

  CUstream_st* make_stream() override {
    return reinterpret_cast<CUstream_st*>(this);
  }
  void free_stream(CUstream_st* /*stream*/) override {}
  std::unique_ptr<runtime::Event> record(CUstream_st* /*stream*/) override {
    return std::make_unique<NullEvent>();
  }
  double elapsed_ms(const runtime::Event& /*begin*/,
                    const runtime::Event& /*end*/) override {
    return 0;
  }
  std::unique_ptr<runtime::Graph> capture(
      std::function<void(CUstream_st*)> work) override {
    return std::make_unique<NullGraph>(*this, std::move(work));
  }
  bool is_capturing(CUstream_st* /*stream*/) const override {
    return capturing;
  }

  bool reached(const runtime::Event& /*event*/) override { return !stuck; }
  std::unique_ptr<runtime::ClockMeter> make_clock_meter() override {
    return on_clock ? std::make_unique<NullClock>(on_clock) : nullptr;
  }

  /// Whether streams do not get on: no event is ever reached.
  std::atomic<bool> stuck = false;
  /// Whether `synchronize` fails.
  std::atomic<bool> lost = false;
  /// What `is_capturing` says.
  std::atomic<bool> capturing = false;

 private:
  struct NullClock final : runtime::ClockMeter {
    explicit NullClock(std::function<runtime::ClockState()> on_clock)
        : on_read(std::move(on_clock)) {}
    runtime::ClockState read() override { return on_read(); }
    std::function<runtime::ClockState()> on_read;
  };

  /// Runs the work at each replay.
  class NullGraph final : public runtime::Graph {
   public:
    NullGraph(NullDevice& device, std::function<void(CUstream_st*)> work)
        : device_(device), work_(std::move(work)) {}
    double replay_ms() override {
      const std::size_t before = device_.launches().size();
      work_(device_.make_stream());
      std::vector<Launch> all = device_.launches();
      all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(before));
      return device_.on_time ? device_.on_time(all) : 0;
    }

   private:
    NullDevice& device_;
    std::function<void(CUstream_st*)> work_;
  };

  mutable std::mutex mutex_;
  std::vector<Launch> launches_;
  int loads_ = 0;
};

}  // namespace logpjit::testing
