// What a compiler makes and a device loads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace logpjit::cache {

/// Frozen on disk.
enum class ImageKind : std::uint32_t {
  kCubin = 1,
  kPtx = 2,
  kSharedObject = 3,
};

/// What the compiler reported of the kernel; -1 where it does not say.
struct LaunchFacts {
  std::int32_t registers = -1;
  std::int32_t static_shared_bytes = -1;
  std::int32_t stack_bytes = -1;
  std::int32_t spill_bytes = -1;  ///< stores + loads
  std::int32_t parameter_bytes = -1;

  bool operator==(const LaunchFacts&) const = default;
};

struct Image {
  ImageKind kind = ImageKind::kCubin;
  std::vector<std::byte> bytes;
  std::string entry;  ///< lowered kernel name to look up after loading
  LaunchFacts facts;
  double compile_ms = 0;

  bool operator==(const Image&) const = default;
};

}  // namespace logpjit::cache
