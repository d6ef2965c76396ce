// NumPy's .npy files, the arrays the command reads and writes.
#include "tuning/npy.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <system_error>

#include "cache/atomic_file.hpp"
#include "logpjit/error.hpp"
#include "tuning/npy_header.hpp"

namespace logpjit::tuning {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;
/// Real headers are about 100 bytes.
constexpr std::uint32_t kLargestHeader = 1 << 16;

struct TypeName {
  NpyType type;
  std::string_view descr;
  std::size_t size;
};
constexpr std::array<TypeName, 5> kTypes{{{NpyType::kFloat32, "<f4", 4},
                                          {NpyType::kFloat16, "<f2", 2},
                                          {NpyType::kUint16, "<u2", 2},
                                          {NpyType::kInt32, "<i4", 4},
                                          {NpyType::kInt64, "<i8", 8}}};

const TypeName& entry(NpyType type) {
  return kTypes[static_cast<std::size_t>(type)];
}

[[noreturn]] void refuse(const std::filesystem::path& file,
                         const std::string& reason) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: {}", file.string(), reason));
}

NpyType type_of(const NpyHeader& header) {
  for (const TypeName& known : kTypes) {
    if (known.descr == header.descr) return known.type;
  }
  std::string advice = "save it as <f4, <f2, <u2 (bf16 bits), <i4 or <i8";
  std::string_view what = "of a type this program does not read";
  if (header.descr.starts_with('>')) what = "big-endian";
  if (header.descr.starts_with('[')) what = "of a structured type";
  if (header.descr.find('O') != std::string::npos) {
    what = "of Python objects, which are never read";
  }
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("the array is {} ({}): {}", what, header.descr, advice));
}

/// Bytes of the data, or nothing when 64 bits cannot count them.
std::optional<std::uint64_t> data_bytes(const NpyHeader& header, NpyType type) {
  std::uint64_t bytes = size_of(type);
  for (std::int64_t dimension : header.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dimension),
                               &bytes)) {
      return std::nullopt;
    }
  }
  return bytes;
}

void read_exactly(std::ifstream& in, void* to, std::uint64_t bytes) {
  in.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
  if (!in) throw Error(ErrorCode::kInvalidArgument, "truncated");
}

std::uint32_t header_length(std::ifstream& in) {
  std::array<char, 8> start{};
  read_exactly(in, start.data(), start.size());
  if (std::string_view(start.data(), kMagic.size()) != kMagic) {
    throw Error(ErrorCode::kInvalidArgument,
                "not a .npy file (it does not start with \\x93NUMPY)");
  }
  const int version = static_cast<unsigned char>(start[6]);
  if (version < 1 || version > 3) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("version {} of the .npy format is not known "
                            "(1, 2 and 3 are)",
                            version));
  }
  std::array<unsigned char, 4> length{};
  read_exactly(in, length.data(), version == 1 ? 2 : 4);
  return length[0] | static_cast<std::uint32_t>(length[1]) << 8 |
         static_cast<std::uint32_t>(length[2]) << 16 |
         static_cast<std::uint32_t>(length[3]) << 24;
}

NpyHeader read_header(std::ifstream& in) {
  const std::uint32_t length = header_length(in);
  if (length > kLargestHeader) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("its header claims {} bytes", length));
  }
  std::string text(length, '\0');
  read_exactly(in, text.data(), length);
  NpyHeader header = parse_npy_header(text);
  if (header.fortran_order && header.shape.size() > 1) {
    throw Error(ErrorCode::kInvalidArgument,
                "the array is Fortran-ordered: save it in C order");
  }
  return header;
}

NpyArray read_array(std::ifstream& in, std::uint64_t file_bytes) {
  const NpyHeader header = read_header(in);
  NpyArray array{type_of(header), header.shape, {}};
  const auto present = file_bytes - static_cast<std::uint64_t>(in.tellg());
  const auto wanted = data_bytes(header, array.type);
  if (!wanted) {
    throw Error(ErrorCode::kInvalidArgument,
                "its header claims more bytes than 64 bits can count");
  }
  if (*wanted != present) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: its header claims {} bytes of data, it holds {}",
                    present < *wanted ? "truncated" : "too long", *wanted,
                    present));
  }
  array.bytes.resize(*wanted);
  read_exactly(in, array.bytes.data(), *wanted);
  return array;
}

std::string file_start(const NpyArray& array) {
  std::string text = npy_header_text({descr(array.type), false, array.shape});
  const std::size_t before = kMagic.size() + 4;
  text.resize((before + text.size() + kAlignment) / kAlignment * kAlignment -
                  before - 1,
              ' ');
  text += '\n';
  std::string start(kMagic);
  start += {'\x01', '\0', static_cast<char>(text.size() & 0xff),
            static_cast<char>(text.size() >> 8)};
  return start + text;
}

}  // namespace

std::string descr(NpyType type) { return std::string(entry(type).descr); }

std::size_t size_of(NpyType type) { return entry(type).size; }

std::int64_t NpyArray::elements() const {
  return static_cast<std::int64_t>(bytes.size() / size_of(type));
}

NpyArray read_npy(const std::filesystem::path& file) {
  std::error_code fault;
  if (!std::filesystem::is_regular_file(file, fault)) {
    throw Error(ErrorCode::kIo,
                fmt::format("{}: {}", file.string(),
                            fault ? fault.message() : "not a regular file"));
  }
  const std::uint64_t bytes = std::filesystem::file_size(file, fault);
  std::ifstream in(file, std::ios::binary);
  if (fault || !in) {
    throw Error(ErrorCode::kIo,
                fmt::format("{}: cannot be read", file.string()));
  }
  try {
    return read_array(in, bytes);
  } catch (const Error& error) {
    refuse(file, error.message());
  }
}

void write_npy(const std::filesystem::path& file, const NpyArray& array) {
  const auto folder = std::filesystem::absolute(file).parent_path();
  cache::AtomicFile out(cache::real_file_system(), folder.string());
  const std::string start = file_start(array);
  out.write(std::as_bytes(std::span(start)));
  out.write(array.bytes);
  const int result = out.publish(file.filename().string());
  if (result == 0) return;
  throw Error(
      ErrorCode::kIo,
      fmt::format("{}: cannot be written: {}", file.string(),
                  std::error_code(-result, std::generic_category()).message()));
}

}  // namespace logpjit::tuning
