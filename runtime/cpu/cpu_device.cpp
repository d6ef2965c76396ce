// Spreads the blocks of a launch over the workers; everything else is plain
// memory and the steady clock.
#include "runtime/cpu/cpu_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <string_view>

#include "logpjit/error.hpp"
#include "runtime/cpu/collectives.hpp"
#include "runtime/cpu/shared_object.hpp"

namespace logpjit::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// CUDA's limits, so that what runs here runs there.
constexpr std::uint32_t kMaxBlock = 1024;
constexpr std::uint32_t kMaxCluster = 16;
constexpr std::align_val_t kBufferAlignment{256};

/// "row_statistics" of "logpjit::device::row_statistics<float, 4>, Arguments".
std::string short_name(std::string_view text) {
  text = text.substr(0, text.find_first_of("<,"));
  const std::size_t scope = text.rfind("::");
  if (scope != std::string_view::npos) text.remove_prefix(scope + 2);
  return std::string(text);
}

class CpuFunction final : public Function {
 public:
  explicit CpuFunction(const cache::Image& image)
      : object_(image.bytes, image.entry, host_abi()),
        name_(short_name(object_.kernel().text)) {}

  device::HostRun* run() const { return object_.run(); }
  std::size_t argument_bytes() const { return object_.kernel().argument_bytes; }
  const std::string& name() const { return name_; }

 private:
  SharedObject object_;
  std::string name_;
};

class CpuBuffer final : public Buffer {
 public:
  explicit CpuBuffer(std::size_t bytes) {
    data_ = ::operator new(bytes, kBufferAlignment, std::nothrow);
    size_ = bytes;
    if (data_ == nullptr) {
      throw Error(ErrorCode::kDriver,
                  fmt::format("cannot allocate {} bytes of memory", bytes));
    }
  }
  ~CpuBuffer() override { ::operator delete(data_, kBufferAlignment); }
};

struct CpuEvent final : Event {
  Clock::time_point time = Clock::now();
};

template <typename Wanted, typename Given>
const Wanted& as(const Given& given) {
  const auto* wanted = dynamic_cast<const Wanted*>(&given);
  if (wanted == nullptr) {
    throw Error(ErrorCode::kInvalidArgument,
                "a function or event of another device was given to the CPU");
  }
  return *wanted;
}

double milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

/// No graphs here: the work itself, run at each replay.
class CpuGraph final : public Graph {
 public:
  explicit CpuGraph(std::function<void(CUstream_st*)> work)
      : work_(std::move(work)) {}

  double replay_ms() override {
    const Clock::time_point begin = Clock::now();
    work_(nullptr);
    return milliseconds(Clock::now() - begin);
  }

 private:
  std::function<void(CUstream_st*)> work_;
};

[[noreturn]] void refuse_launch(const std::string& kernel,
                                const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("cannot launch {}: {}", kernel, why));
}

void check_shape(const std::string& kernel, const LaunchShape& shape,
                 std::int64_t shared_limit) {
  constexpr std::uint32_t kMaxGrid = std::numeric_limits<int>::max();
  if (shape.grid < 1 || shape.grid > kMaxGrid) {
    refuse_launch(kernel, fmt::format("grid {} is not within 1 to {}",
                                      shape.grid, kMaxGrid));
  }
  if (shape.block < 1 || shape.block > kMaxBlock) {
    refuse_launch(kernel, fmt::format("block {} is not within 1 to {}",
                                      shape.block, kMaxBlock));
  }
  if (shape.cluster < 1 || shape.cluster > kMaxCluster ||
      shape.grid % shape.cluster != 0) {
    refuse_launch(kernel, fmt::format("cluster {} is not within 1 to {} or "
                                      "does not divide grid {}",
                                      shape.cluster, kMaxCluster, shape.grid));
  }
  if (shape.dynamic_shared_bytes > shared_limit) {
    refuse_launch(kernel,
                  fmt::format("{} bytes of dynamic shared memory, of "
                              "which a block has at most {}",
                              shape.dynamic_shared_bytes, shared_limit));
  }
}

/// The failure of the lowest block wins, so that a message is the same
/// whichever worker is faster.
class FirstFailure {
 public:
  bool any() const { return any_.load(std::memory_order_relaxed); }
  void record(std::int64_t group, Error error) {
    const std::lock_guard lock(mutex_);
    if (error_ && group_ <= group) return;
    group_ = group;
    error_.emplace(std::move(error));
    any_ = true;
  }
  void rethrow() const {
    if (error_) throw *error_;
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> any_{false};
  std::int64_t group_ = 0;
  std::optional<Error> error_;
};

void run_group(std::unique_ptr<Group>& group, const GroupWork& work,
               std::int64_t index, FirstFailure& failure) {
  try {
    if (group == nullptr) group = std::make_unique<Group>();
    group->run(work, index * work.shape.cluster);
  } catch (const Error& error) {
    failure.record(index, error);
  } catch (const std::bad_alloc&) {
    failure.record(
        index, Error(ErrorCode::kUnavailable,
                     fmt::format("no memory to run kernel {}", work.kernel)));
  }
}

}  // namespace

CpuDevice::CpuDevice(const CpuDeviceOptions& options)
    : order_(options.order),
      pool_(options.threads > 0 ? options.threads : available_threads()) {
  info_ = describe_host(pool_.threads());
  groups_.resize(pool_.threads());
}

CpuDevice::~CpuDevice() = default;

std::unique_ptr<Function> CpuDevice::load(const cache::Image& image,
                                          std::uint32_t dynamic_shared_bytes) {
  if (image.kind != cache::ImageKind::kSharedObject) {
    throw Error(ErrorCode::kDriver,
                "cannot load the kernel: its image is no shared object");
  }
  if (dynamic_shared_bytes > info_.shared_bytes_per_block) {
    throw Error(
        ErrorCode::kDriver,
        fmt::format("cannot load the kernel: {} bytes of dynamic "
                    "shared memory, of which a block has at most {}",
                    dynamic_shared_bytes, info_.shared_bytes_per_block));
  }
  return std::make_unique<CpuFunction>(image);
}

void CpuDevice::launch(const Function& function, const LaunchShape& shape,
                       CUstream_st* /*stream*/, const void* arguments,
                       std::size_t argument_bytes) {
  const auto& kernel = as<CpuFunction>(function);
  check_shape(kernel.name(), shape, info_.shared_bytes_per_block);
  if (argument_bytes != kernel.argument_bytes()) {
    refuse_launch(kernel.name(),
                  fmt::format("{} bytes of arguments where it takes {}",
                              argument_bytes, kernel.argument_bytes()));
  }
  run_groups({kernel.name().c_str(), kernel.run(), arguments, shape, order_});
}

void CpuDevice::run_groups(const GroupWork& work) {
  const std::int64_t count = work.shape.grid / work.shape.cluster;
  std::atomic<std::int64_t> next{0};
  FirstFailure failure;
  const auto workers =
      static_cast<int>(std::min<std::int64_t>(count, pool_.threads()));
  pool_.run(workers, [&](int worker) {
    while (!failure.any()) {
      const std::int64_t index = next++;
      if (index >= count) return;
      run_group(groups_[worker], work, index, failure);
    }
  });
  failure.rethrow();
}

std::unique_ptr<Buffer> CpuDevice::allocate(std::size_t bytes) {
  return std::make_unique<CpuBuffer>(bytes);
}

void CpuDevice::copy_in(void* to, const void* from, std::size_t bytes) {
  copy(to, from, bytes, nullptr);
}

void CpuDevice::copy_out(void* to, const void* from, std::size_t bytes) {
  copy(to, from, bytes, nullptr);
}

void CpuDevice::copy(void* to, const void* from, std::size_t bytes,
                     CUstream_st* /*stream*/) {
  if (bytes > 0) std::memmove(to, from, bytes);
}

void CpuDevice::fill(void* to, std::uint8_t value, std::size_t bytes) {
  if (bytes > 0) std::memset(to, value, bytes);
}

std::size_t CpuDevice::free_bytes() const { return available_memory(); }

// Work is over when a call returns, so one stream is as good as another: the
// handle is the device itself, to be told from null.
CUstream_st* CpuDevice::make_stream() {
  return reinterpret_cast<CUstream_st*>(this);
}

void CpuDevice::free_stream(CUstream_st* /*stream*/) {}

std::unique_ptr<Event> CpuDevice::record(CUstream_st* /*stream*/) {
  return std::make_unique<CpuEvent>();
}

double CpuDevice::elapsed_ms(const Event& begin, const Event& end) {
  return milliseconds(as<CpuEvent>(end).time - as<CpuEvent>(begin).time);
}

std::unique_ptr<Graph> CpuDevice::capture(
    std::function<void(CUstream_st*)> work) {
  return std::make_unique<CpuGraph>(std::move(work));
}

}  // namespace logpjit::runtime
