// .npy files: what is written comes back, and what is wrong is refused.
#include "tuning/npy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "logpjit/error.hpp"
#include "tuning/npy_header.hpp"

namespace logpjit::tuning {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class Npy : public testing::Test {
 protected:
  Npy()
      : folder_(fs::temp_directory_path() /
                ("logpjit_npy_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Npy() override { fs::remove_all(folder_); }

  fs::path file(const std::string& bytes) {
    const fs::path path = folder_ / "x.npy";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  /// A version 1 file of this header and `data` bytes of zeros.
  fs::path npy(const std::string& header, std::size_t data) {
    std::string text("\x93NUMPY\x01\x00", 8);
    text += static_cast<char>(header.size() & 0xff);
    text += static_cast<char>(header.size() >> 8);
    return file(text + header + std::string(data, '\0'));
  }

  void expect_refused(const fs::path& path, const std::string& reason) {
    try {
      read_npy(path);
      ADD_FAILURE() << "was read: " << reason;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error.message(),
                  AllOf(HasSubstr(path.string()), HasSubstr(reason)));
      EXPECT_THAT(error.message(), testing::Not(HasSubstr("\n")));
    }
  }

  fs::path folder_;
};

NpyArray array_of(NpyType type, std::vector<std::int64_t> shape) {
  NpyArray array{type, std::move(shape), {}};
  std::size_t count = size_of(type);
  for (std::int64_t d : array.shape) count *= static_cast<std::size_t>(d);
  array.bytes.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    array.bytes[i] = static_cast<std::byte>(i * 37);
  }
  return array;
}

TEST_F(Npy, EveryTypeAndRankComesBack) {
  for (NpyType type : {NpyType::kFloat32, NpyType::kFloat16, NpyType::kUint16,
                       NpyType::kInt32, NpyType::kInt64}) {
    for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{},
                                                   {5},
                                                   {0},
                                                   {3, 4},
                                                   {2, 0, 7},
                                                   {1, 2, 3}}) {
      const NpyArray array = array_of(type, shape);
      write_npy(folder_ / "y.npy", array);
      EXPECT_EQ(read_npy(folder_ / "y.npy"), array) << descr(type);
    }
  }
}

TEST_F(Npy, DataStartsAtAMultipleOf64) {
  for (std::int64_t n : {1, 10, 100000}) {
    write_npy(folder_ / "y.npy", array_of(NpyType::kInt32, {n}));
    EXPECT_EQ((fs::file_size(folder_ / "y.npy") -
               static_cast<std::uintmax_t>(4 * n)) %
                  64,
              0u);
  }
}

TEST_F(Npy, ReadsWhatNumPyWrites) {
  const auto array = read_npy(npy(
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", 24));
  EXPECT_EQ(array.type, NpyType::kFloat32);
  EXPECT_EQ(array.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(array.elements(), 6);
}

TEST_F(Npy, KeyOrderSpacesAndQuotesAreFree) {
  const auto array = read_npy(
      npy("{ \"shape\":(3,),'fortran_order':True , 'descr' : \"<i8\"}", 24));
  EXPECT_EQ(array.shape, std::vector<std::int64_t>{3});
}

TEST_F(Npy, ReadsVersion2) {
  const std::string header =
      "{'descr': '<u2', 'fortran_order': False, 'shape': (1,)}";
  std::string text("\x93NUMPY\x02\x00", 8);
  text += static_cast<char>(header.size());
  text += std::string(3, '\0');
  EXPECT_EQ(read_npy(file(text + header + "ab")).elements(), 1);
}

TEST_F(Npy, Truncated) {
  expect_refused(
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9,)}", 35),
      "truncated: its header claims 36 bytes of data, it holds 35");
  expect_refused(file("\x93NUMPY"), "truncated");
  expect_refused(file(""), "truncated");
  expect_refused(file(std::string("\x93NUMPY\x01\x00\xff\x00", 10) + "{'d"),
                 "truncated");
}

TEST_F(Npy, TooLong) {
  expect_refused(
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9,)}", 40),
      "too long");
}

TEST_F(Npy, SizeLies) {
  expect_refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': "
                     "(4611686018427387904, 4611686018427387904)}",
                     8),
                 "more bytes than 64 bits can count");
  expect_refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': "
                     "(99999999999999999999,)}",
                     8),
                 "'shape' in the header is not integers");
  expect_refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': "
                     "(-1, -2)}",
                     8),
                 "negative dimension");
  expect_refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': "
                     "(1099511627776,)}",
                     8),
                 "truncated: its header claims 4398046511104 bytes");
}

TEST_F(Npy, WrongTypes) {
  const auto typed = [&](const std::string& type) {
    return npy("{'descr': " + type + ", 'fortran_order': False, 'shape': (1,)}",
               8);
  };
  expect_refused(typed("'>f4'"), "big-endian (>f4)");
  expect_refused(typed("'|O'"), "Python objects");
  expect_refused(typed("[('a', '<f4'), ('b', '<i8')]"), "structured type");
  expect_refused(typed("'<f8'"), "of a type this program does not read (<f8)");
  expect_refused(typed("'|b1'"), "of a type this program does not read");
}

TEST_F(Npy, FortranOrder) {
  expect_refused(
      npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", 16),
      "Fortran-ordered");
}

TEST_F(Npy, DamagedHeaders) {
  expect_refused(file("PK\x03\x04 not an npy file"), "not a .npy file");
  expect_refused(file(std::string("\x93NUMPY\x09\x00\x01\x00 ", 11)),
                 "version 9");
  expect_refused(npy("{'descr': '<f4', 'shape': (1,)}", 4),
                 "no 'fortran_order'");
  expect_refused(npy("{'fortran_order': False, 'shape': (1,)}", 4),
                 "no 'descr'");
  expect_refused(npy("{'descr': '<f4', 'fortran_order': False}", 4),
                 "no 'shape'");
  expect_refused(npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", 4),
                 "neither True nor False");
  expect_refused(npy("{'x': 3}", 4), "unknown key 'x'");
  expect_refused(npy("['descr']", 4), "lacks a '{'");
  expect_refused(
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} + 1", 4),
      "goes on");
  expect_refused(file(std::string("\x93NUMPY\x02\x00\xff\xff\xff\x7f", 12)),
                 "its header claims 2147483647 bytes");
}

TEST_F(Npy, AbsentFilesAndFolders) {
  for (const fs::path& path : {folder_ / "none.npy", folder_}) {
    try {
      read_npy(path);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kIo);
      EXPECT_THAT(error.message(), HasSubstr(path.string()));
    }
  }
}

TEST_F(Npy, HeaderTextOfRanks) {
  EXPECT_EQ(npy_header_text({"<f4", false, {}}),
            "{'descr': '<f4', 'fortran_order': False, 'shape': (), }");
  EXPECT_EQ(npy_header_text({"<f4", false, {3}}),
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }");
}

}  // namespace
}  // namespace logpjit::tuning
