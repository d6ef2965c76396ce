// The header dictionary of a .npy file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace logpjit::tuning {

/// As written: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
struct NpyHeader {
  std::string descr;  ///< a structured type is kept as its source text
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

/// Throws Error{kInvalidArgument} whose message is only the
/// reason ("the header has no 'shape'"); the caller adds the file's name.
NpyHeader parse_npy_header(std::string_view text);

/// The dictionary alone, without padding or line break.
std::string npy_header_text(const NpyHeader& header);

}  // namespace logpjit::tuning
