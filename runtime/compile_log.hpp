// Compiler logs for people: the numbered source lines around each error.
#pragma once

#include <string>
#include <string_view>

namespace logpjit::runtime {

/// The lines of `source` around each error that `log` reports in the file
/// `name`, as "name(12): error: ..." (NVRTC) or "name:12:5: error: ..." (host
/// compilers); empty if the log names no line. At most `kMaxQuotedErrors`.
std::string quote_error_lines(std::string_view source, std::string_view log,
                              std::string_view name);

/// The first error of `log`, without position: one line for a message; the
/// log's first line that is not empty if nothing looks like an error.
std::string first_error(std::string_view log);

inline constexpr int kMaxQuotedErrors = 8;
inline constexpr int kQuotedLinesAround = 3;

}  // namespace logpjit::runtime
