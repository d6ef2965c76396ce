// The copy of logits whose vocabulary is not contiguous, when it is asked for.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>

#include "logpjit/call_options.hpp"
#include "runtime/engine.hpp"
#include "runtime/operations/check.hpp"

namespace logpjit::runtime {

/// Bytes of workspace for copies of those of `matrices` that need one.
std::size_t copy_bytes(const CallOptions& options,
                       std::initializer_list<const TensorView*> matrices);

/// At most two matrices of a call, those that need it as contiguous ones in the
/// caller's workspace. Construction checks them and finds the memory
/// (Error{kInvalidArgument} naming `workspace`); nothing is copied before
/// `start`.
class CopiedLogits {
 public:
  CopiedLogits(std::string_view op, Engine& engine, const CallOptions& options,
               std::initializer_list<Named> matrices, std::int64_t vocab,
               CUstream_st* stream);

  bool needed() const { return count_ > 0; }
  /// Matrix `index` as the call is to see it.
  const TensorView& view(std::size_t index) const { return views_[index]; }

  /// Launches the copies. None of `outputs` may overlap what is copied.
  void start(std::initializer_list<Named> outputs);

 private:
  struct Copy {
    std::string_view name;
    TensorView from;
    TensorView to;
  };

  std::string_view op_;
  Engine& engine_;
  CUstream_st* stream_;
  std::int64_t vocab_;
  std::size_t count_ = 0;
  std::array<TensorView, 2> views_{};
  std::array<Copy, 2> copies_{};
};

}  // namespace logpjit::runtime
