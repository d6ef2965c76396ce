// The CPU as a device: every CUDA thread a fiber, blocks spread over OS
// threads.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/cpu/group.hpp"
#include "runtime/cpu/host_info.hpp"
#include "runtime/cpu/worker_pool.hpp"
#include "runtime/device.hpp"

namespace logpjit::runtime {

struct CpuDeviceOptions {
  int threads = 0;  ///< OS threads that run blocks; 0 = all
  /// A kernel that lacks a barrier computes something else backward.
  ThreadOrder order = ThreadOrder::kForward;
};

/// Differs from the interface in that `launch` is synchronous, allocates at
/// first and takes a lock: launches run one after the other. It throws
/// Error{kInternal} with kernel, block and thread where a GPU would hang or
/// go wrong (README.md lists what it notices), and stays usable after that.
class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const CpuDeviceOptions& options = {});
  ~CpuDevice() override;

  const DeviceInfo& info() const override { return info_; }
  std::string target() const override { return host_target(); }

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
  void synchronize() override {}
  std::size_t free_bytes() const override;

  CUstream_st* make_stream() override;
  void free_stream(CUstream_st* stream) override;
  std::unique_ptr<Event> record(CUstream_st* stream) override;
  double elapsed_ms(const Event& begin, const Event& end) override;
  std::unique_ptr<Graph> capture(
      std::function<void(CUstream_st*)> work) override;

 private:
  void run_groups(const GroupWork& work);

  const ThreadOrder order_;
  DeviceInfo info_;
  // Before the pool: its threads use them. One a worker, made by it.
  std::vector<std::unique_ptr<Group>> groups_;
  WorkerPool pool_;
};

}  // namespace logpjit::runtime
