// The executing half of the seam between logpjit and the outside world.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cache/image.hpp"
#include "logpjit/device.hpp"
#include "logpjit/error.hpp"

struct CUstream_st;

namespace logpjit::runtime {

/// A load that failed for the device's or the process's own reasons, whatever
/// the image: memory ran out, an earlier kernel broke the context. Compiling
/// anew would not help. Code kDriver.
class DeviceTrouble : public Error {
 public:
  using Error::Error;
};

/// One launch: blocks of one-dimensional threads, in clusters of `cluster`.
struct LaunchShape {
  std::uint32_t grid = 1;
  std::uint32_t block = 1;
  std::uint32_t cluster = 1;
  std::uint32_t dynamic_shared_bytes = 0;
  bool operator==(const LaunchShape&) const = default;
};

/// A kernel a device can run. Immutable; lives as long as the process keeps it
/// (never unloaded implicitly: that would kill stream captures).
class Function {
 public:
  virtual ~Function() = default;
};

/// Memory a device owns, freed with the object.
class Buffer {
 public:
  virtual ~Buffer() = default;
  void* data() const { return data_; }
  std::size_t size() const { return size_; }

 protected:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A point in a stream's work.
class Event {
 public:
  virtual ~Event() = default;
};

/// Device work that was recorded once and can be run over and over. For one
/// thread; the device must outlive it.
class Graph {
 public:
  virtual ~Graph() = default;
  /// Runs it and waits; milliseconds on the device.
  virtual double replay_ms() = 0;
};

/// How fast a device's processors run, and what holds them back.
struct ClockState {
  double share = 1;       ///< of their highest clock
  std::string held_by{};  ///< "the power cap", ...; empty: nothing
};

/// Reads a device's clock. For one thread.
class ClockMeter {
 public:
  virtual ~ClockMeter() = default;
  /// As of now; full speed where it cannot be told.
  virtual ClockState read() = 0;
};

/// Implementations: CudaDevice, CpuDevice, NullDevice (tests). Safe to share
/// between threads.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  /// What to compile for: "sm_90a"; for the CPU the host's architecture.
  virtual std::string target() const = 0;

  /// Loads and resolves. A refusal of the image is Error{kDriver}: the caller
  /// treats it as a cache miss, once. Any other failure is DeviceTrouble.
  virtual std::unique_ptr<Function> load(
      const cache::Image& image, std::uint32_t dynamic_shared_bytes) = 0;

  /// Starts `function` on `stream` (null = the default stream; the CPU device
  /// runs it before returning). `arguments` is the kernel's argument struct.
  /// Never allocates, locks, synchronises or queries.
  virtual void launch(const Function& function, const LaunchShape& shape,
                      CUstream_st* stream, const void* arguments,
                      std::size_t argument_bytes) = 0;

  // Memory, copies and timing for the command, the tuner and the tests.
  virtual std::unique_ptr<Buffer> allocate(std::size_t bytes) = 0;
  virtual void copy_in(void* to, const void* from, std::size_t bytes) = 0;
  virtual void copy_out(void* to, const void* from, std::size_t bytes) = 0;
  /// Sets every byte.
  virtual void fill(void* to, std::uint8_t value, std::size_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes,
                    CUstream_st* stream) = 0;
  virtual void synchronize() = 0;
  virtual std::size_t free_bytes() const = 0;

  // Streams that wait for each other. A device whose calls return when the work
  // is done has nothing to wait for.
  virtual std::unique_ptr<Event> make_event() {
    return std::make_unique<Event>();
  }
  /// `event` becomes the point that the stream's work has reached by then.
  virtual void mark(Event& /*event*/, CUstream_st* /*stream*/) {}
  virtual void wait_for(CUstream_st* /*stream*/, const Event& /*event*/) {}
  /// Whether the work before the mark is done; never waits. A failure of that
  /// work is Error{kDriver}.
  virtual bool reached(const Event& /*event*/) { return true; }
  /// Host memory that `copy` and kernels can use.
  virtual std::unique_ptr<Buffer> allocate_host(std::size_t bytes) {
    return allocate(bytes);
  }
  /// For a thread of the caller's own: libraries that go by the current device
  /// find this one.
  virtual void bind_thread() {}

  virtual CUstream_st* make_stream() = 0;
  virtual void free_stream(CUstream_st* stream) = 0;
  virtual std::unique_ptr<Event> record(CUstream_st* stream) = 0;
  /// Waits for `end`; milliseconds between the two.
  virtual double elapsed_ms(const Event& begin, const Event& end) = 0;
  /// Records what `work` launches on the stream it is given. Devices without
  /// graphs keep `work` and run it at each replay.
  virtual std::unique_ptr<Graph> capture(
      std::function<void(CUstream_st*)> work) = 0;
  /// Null where the clock cannot be asked for.
  virtual std::unique_ptr<ClockMeter> make_clock_meter() { return nullptr; }
  /// Whether work on `stream` is being captured instead of run.
  virtual bool is_capturing(CUstream_st* /*stream*/) const { return false; }
};

}  // namespace logpjit::runtime
