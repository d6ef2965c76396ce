// The bytes that a call reads and writes, noted as its tensors are checked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "logpjit/tensor.hpp"

namespace logpjit::runtime {

/// A tensor under its name.
struct Named {
  std::string_view name;
  const TensorView& tensor;
};

/// Addresses [begin, end).
struct Extent {
  std::uintptr_t begin;
  std::uintptr_t end;
};

/// What a view touches; nothing where it has no elements.
/// Error{kInvalidArgument} when addresses do not go that far.
Extent extent_of(std::string_view op, const Named& argument);

/// No output may share bytes with another output or with an input. This stands
/// in the way of each launch: what lies beside all that is written is compared
/// with that whole and not with its parts. Allocates nothing.
class Footprint {
 public:
  void read(std::string_view name, std::uintptr_t begin, std::uintptr_t end) {
    if (read_ == kMost) refuse_more();
    reads_[read_++] = {begin, end, name.data(), name.size()};
  }

  void write(std::string_view name, std::uintptr_t begin, std::uintptr_t end) {
    if (begin < highest_ && end > lowest_) [[unlikely]] {
      compare_with_writes(begin, end);
    }
    lowest_ = begin < lowest_ ? begin : lowest_;
    highest_ = end > highest_ ? end : highest_;
    if (written_ == kMost) refuse_more();
    writes_[written_++] = {begin, end, name.data(), name.size()};
  }

  /// The first input is written in its place: it is no input any more.
  void take_first_read() { reads_[0].begin = reads_[0].end = 0; }

  /// Error{kInvalidArgument} naming the output, the later one of two, where
  /// bytes are shared.
  void check(std::string_view op) const {
    bool near = shared_;
    for (std::size_t i = 0; i < read_; ++i) {
      near |= reads_[i].begin < highest_ && reads_[i].end > lowest_;
    }
    if (near) [[unlikely]] {
      check_parts(op);
    }
  }

 private:
  static constexpr std::size_t kMost = 14;
  struct Part {  // without constructors: most parts are never touched
    std::uintptr_t begin;
    std::uintptr_t end;
    const char* name;
    std::size_t name_length;
  };

  static bool overlap(const Part& a, const Part& b) {
    return a.begin < b.end && b.begin < a.end;
  }
  [[noreturn]] static void refuse_more();
  void compare_with_writes(std::uintptr_t begin, std::uintptr_t end);
  void check_parts(std::string_view op) const;

  std::size_t written_ = 0;
  std::size_t read_ = 0;
  /// Of all that is written.
  std::uintptr_t lowest_ = std::numeric_limits<std::uintptr_t>::max();
  std::uintptr_t highest_ = 0;
  bool shared_ = false;
  std::array<Part, kMost> writes_;
  std::array<Part, kMost> reads_;
};

}  // namespace logpjit::runtime
