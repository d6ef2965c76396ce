// The operations, one line each once their structs are read.
#include "logpjit/operations.hpp"

#include "runtime/c_api/handles.hpp"
#include "runtime/c_api/status.hpp"
#include "runtime/c_api/structs.hpp"

namespace logpjit::c_api {
namespace {

int workspace(const auto& call, uint64_t* bytes) {
  return guarded([&] {
    require(bytes, "workspace", "bytes");
    *bytes = workspace_bytes(call());
  });
}

Runtime& runtime_of(logpjit_runtime* runtime, const char* call) {
  require(runtime, call, "runtime");
  return runtime->runtime;
}

}  // namespace
}  // namespace logpjit::c_api

using logpjit::c_api::guarded;
using logpjit::c_api::runtime_of;
using logpjit::c_api::whole;

int logpjit_forward(logpjit_runtime* runtime, const logpjit_row_forward* call,
                    logpjit_stream stream) {
  constexpr const char* kCall = "forward";
  return guarded([&] {
    logpjit::forward(runtime_of(runtime, kCall),
                     logpjit::c_api::row_forward(kCall, whole(kCall, call)),
                     stream);
  });
}

int logpjit_backward(logpjit_runtime* runtime, const logpjit_row_backward* call,
                     logpjit_stream stream) {
  constexpr const char* kCall = "backward";
  return guarded([&] {
    logpjit::backward(runtime_of(runtime, kCall),
                      logpjit::c_api::row_backward(kCall, whole(kCall, call)),
                      stream);
  });
}

int logpjit_forward_with_grad(logpjit_runtime* runtime,
                              const logpjit_row_forward* values,
                              const logpjit_row_gradient* grad,
                              logpjit_stream stream) {
  constexpr const char* kCall = "forward_with_grad";
  return guarded([&] {
    logpjit::forward_with_grad(
        runtime_of(runtime, kCall),
        logpjit::c_api::row_with_grad(kCall, whole(kCall, values),
                                      whole(kCall, grad)),
        stream);
  });
}

int logpjit_kl_forward(logpjit_runtime* runtime,
                       const logpjit_kl_forward_call* call,
                       logpjit_stream stream) {
  constexpr const char* kCall = "kl_forward";
  return guarded([&] {
    logpjit::kl_forward(runtime_of(runtime, kCall),
                        logpjit::c_api::kl_forward(kCall, whole(kCall, call)),
                        stream);
  });
}

int logpjit_kl_backward(logpjit_runtime* runtime,
                        const logpjit_kl_backward_call* call,
                        logpjit_stream stream) {
  constexpr const char* kCall = "kl_backward";
  return guarded([&] {
    logpjit::kl_backward(runtime_of(runtime, kCall),
                         logpjit::c_api::kl_backward(kCall, whole(kCall, call)),
                         stream);
  });
}

int logpjit_forward_workspace(const logpjit_row_forward* call,
                              uint64_t* bytes) {
  constexpr const char* kCall = "forward_workspace";
  return logpjit::c_api::workspace(
      [&] { return logpjit::c_api::row_forward(kCall, whole(kCall, call)); },
      bytes);
}

int logpjit_backward_workspace(const logpjit_row_backward* call,
                               uint64_t* bytes) {
  constexpr const char* kCall = "backward_workspace";
  return logpjit::c_api::workspace(
      [&] { return logpjit::c_api::row_backward(kCall, whole(kCall, call)); },
      bytes);
}

int logpjit_forward_with_grad_workspace(const logpjit_row_forward* values,
                                        const logpjit_row_gradient* grad,
                                        uint64_t* bytes) {
  constexpr const char* kCall = "forward_with_grad_workspace";
  return logpjit::c_api::workspace(
      [&] {
        return logpjit::c_api::row_with_grad(kCall, whole(kCall, values),
                                             whole(kCall, grad));
      },
      bytes);
}

int logpjit_kl_forward_workspace(const logpjit_kl_forward_call* call,
                                 uint64_t* bytes) {
  constexpr const char* kCall = "kl_forward_workspace";
  return logpjit::c_api::workspace(
      [&] { return logpjit::c_api::kl_forward(kCall, whole(kCall, call)); },
      bytes);
}

int logpjit_kl_backward_workspace(const logpjit_kl_backward_call* call,
                                  uint64_t* bytes) {
  constexpr const char* kCall = "kl_backward_workspace";
  return logpjit::c_api::workspace(
      [&] { return logpjit::c_api::kl_backward(kCall, whole(kCall, call)); },
      bytes);
}
