// A GPU behind the Device interface.
#pragma once

#include <memory>

#include "runtime/cuda/context.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/device.hpp"

namespace logpjit::runtime::cuda {

class CudaDevice final : public Device {
 public:
  /// GPU number `index` of those the driver shows. Error{kUnavailable} when
  /// there are fewer.
  CudaDevice(const Driver& driver, int index);

  const DeviceInfo& info() const override { return info_; }
  std::string target() const override;
  std::unique_ptr<Function> load(const cache::Image& image,
                                 std::uint32_t dynamic_shared_bytes) override;
  void launch(const Function& function, const LaunchShape& shape,
              CUstream_st* stream, const void* arguments,
              std::size_t argument_bytes) override;

  std::unique_ptr<Buffer> allocate(std::size_t bytes) override;
  void copy_in(void* to, const void* from, std::size_t bytes) override;
  void copy_out(void* to, const void* from, std::size_t bytes) override;
  void fill(void* to, std::uint8_t value, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes,
            CUstream_st* stream) override;
  void synchronize() override;
  std::size_t free_bytes() const override;
  std::unique_ptr<Event> make_event() override;
  void mark(Event& event, CUstream_st* stream) override;
  void wait_for(CUstream_st* stream, const Event& event) override;
  bool reached(const Event& event) override;
  std::unique_ptr<Buffer> allocate_host(std::size_t bytes) override;
  void bind_thread() override;
  CUstream_st* make_stream() override;
  void free_stream(CUstream_st* stream) override;
  std::unique_ptr<Event> record(CUstream_st* stream) override;
  double elapsed_ms(const Event& begin, const Event& end) override;
  std::unique_ptr<Graph> capture(
      std::function<void(CUstream_st*)> work) override;
  bool is_capturing(CUstream_st* stream) const override;
  std::unique_ptr<ClockMeter> make_clock_meter() override;

 private:
  const Driver& driver_;
  CUdevice device_;
  PrimaryContext context_;
  DeviceInfo info_;
};

/// Number of GPUs the driver shows.
int device_count(const Driver& driver);

}  // namespace logpjit::runtime::cuda
