// Little-endian numbers out of and into bytes, bounds checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace logpjit::cache {

/// Reads in order. The first read past the end fails this and all that follow;
/// they yield zeros and empty spans.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool failed() const { return failed_; }
  std::size_t left() const { return rest_.size(); }

  std::span<const std::byte> bytes(std::uint64_t count) {
    if (failed_ || count > rest_.size()) {
      failed_ = true;
      return {};
    }
    const auto size = static_cast<std::size_t>(count);
    const auto result = rest_.first(size);
    rest_ = rest_.subspan(size);
    return result;
  }

  std::string text(std::uint64_t count) {
    const auto span = bytes(count);
    return {reinterpret_cast<const char*>(span.data()), span.size()};
  }

  std::uint64_t number(std::size_t width) {
    std::uint64_t value = 0;
    unsigned shift = 0;
    for (std::byte byte : bytes(width)) {
      value |= std::to_integer<std::uint64_t>(byte) << shift;
      shift += 8;
    }
    return value;
  }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }

 private:
  std::span<const std::byte> rest_;
  bool failed_ = false;
};

/// Appends to one growing buffer.
class ByteWriter {
 public:
  void bytes(std::span<const std::byte> bytes) {
    data_.insert(data_.end(), bytes.begin(), bytes.end());
  }
  void text(std::string_view text) {
    bytes(std::as_bytes(std::span(text.data(), text.size())));
  }
  void number(std::uint64_t value, std::size_t width) {
    for (std::size_t i = 0; i < width; ++i) {
      data_.push_back(static_cast<std::byte>(value >> (8 * i) & 0xff));
    }
  }
  void u32(std::uint32_t value) { number(value, 4); }
  void u64(std::uint64_t value) { number(value, 8); }

  void reserve(std::size_t bytes) { data_.reserve(bytes); }
  std::span<const std::byte> written() const { return data_; }
  std::vector<std::byte> take() { return std::move(data_); }

 private:
  std::vector<std::byte> data_;
};

}  // namespace logpjit::cache
