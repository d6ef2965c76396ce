// NumPy's .npy files, the arrays the command reads and writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace logpjit::tuning {

/// Element types, little-endian. bf16 travels as kUint16.
enum class NpyType { kFloat32, kFloat16, kUint16, kInt32, kInt64 };

/// The name in a file's header: "<f4", "<f2", "<u2", "<i4", "<i8".
std::string descr(NpyType type);
std::size_t size_of(NpyType type);

/// A whole array in memory, row-major.
struct NpyArray {
  NpyType type = NpyType::kFloat32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  std::int64_t elements() const;
  bool operator==(const NpyArray&) const = default;
};

/// Reads versions 1 to 3. What cannot be taken whole is refused with one line
/// that names the file and what is wrong with it: Error{kIo} when it cannot be
/// read at all, Error{kInvalidArgument} when it is truncated, too long, not
/// little-endian, Fortran-ordered, of another type, or lies about its size
/// (nothing is allocated before the file is known to hold that much).
NpyArray read_npy(const std::filesystem::path& file);

/// Writes version 1 under a temporary name beside `file`, then renames: `file`
/// is whole or untouched. Throws Error{kIo}.
void write_npy(const std::filesystem::path& file, const NpyArray& array);

}  // namespace logpjit::tuning
