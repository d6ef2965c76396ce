// Owners of driver handles: each frees what it holds, so no failure leaks.
#pragma once

#include <functional>

#include "cache/image.hpp"
#include "runtime/cuda/context.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/device.hpp"

namespace logpjit::runtime::cuda {

/// A loaded, resolved kernel. Its library is never unloaded: unloading kills
/// stream captures, in other threads too. A context is current while
/// constructing. A refusal of the image is Error{kDriver}, anything else
/// DeviceTrouble, of which ContextLost is worth a second try.
class CudaFunction final : public Function {
 public:
  CudaFunction(const Driver& driver, CUdevice device, const cache::Image& image,
               std::uint32_t dynamic_shared_bytes);
  CUfunc_st* get() const { return function_; }
  /// Once more, for a new context.
  void set_attributes() const;

 private:
  void check(CUresult result, const char* call) const;

  const Driver& driver_;
  const CUdevice device_;
  const std::uint32_t dynamic_shared_bytes_;
  CUkern_st* kernel_ = nullptr;
  CUfunc_st* function_ = nullptr;
};

class CudaBuffer final : public Buffer {
 public:
  CudaBuffer(const Driver& driver, const PrimaryContext& context,
             std::size_t bytes);
  ~CudaBuffer() override;

 private:
  const Driver& driver_;
  const PrimaryContext& context_;
};

/// Page-locked memory of the host.
class CudaHostBuffer final : public Buffer {
 public:
  CudaHostBuffer(const Driver& driver, const PrimaryContext& context,
                 std::size_t bytes);
  ~CudaHostBuffer() override;

 private:
  const Driver& driver_;
  const PrimaryContext& context_;
};

class CudaEvent final : public Event {
 public:
  CudaEvent(const Driver& driver, const PrimaryContext& context);
  ~CudaEvent() override;
  CUevent_st* get() const { return event_; }

 private:
  const Driver& driver_;
  const PrimaryContext& context_;
  CUevent_st* event_ = nullptr;
};

/// A non-blocking stream; its context stays current around it.
class CudaStream {
 public:
  explicit CudaStream(const Driver& driver);
  ~CudaStream();
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  CUstream_st* get() const { return stream_; }

 private:
  const Driver& driver_;
  CUstream_st* stream_ = nullptr;
};

/// What `work` launches on `stream`, captured and instantiated.
class CudaGraph {
 public:
  CudaGraph(const Driver& driver, CUstream_st* stream,
            const std::function<void(CUstream_st*)>& work);
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  void launch(CUstream_st* stream) const;

 private:
  const Driver& driver_;
  CUgraph_st* graph_ = nullptr;
  CUgraphExec_st* executable_ = nullptr;
};

}  // namespace logpjit::runtime::cuda
