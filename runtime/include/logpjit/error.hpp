// The one exception type that leaves the library.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "logpjit/api.hpp"

namespace logpjit {

enum class ErrorCode {
  kInvalidArgument,  ///< the caller's mistake; the message names the argument
  kUnsupported,      ///< legal, but this build, device or driver cannot do it
  kUnavailable,      ///< a driver, compiler or device is absent
  kCompileFailed,    ///< `log()` holds the compiler's output
  kDriver,           ///< a driver call failed; the message names call and code
  kIo,               ///< a file could not be read or written
  kTimeout,          ///< something outside did not answer in time
  kNotCached,        ///< compile = never, and the kernel is in no cache
  kInternal,         ///< a fault of logpjit itself
};

/// Short stable name of a code, as in JSON output ("invalid_argument", ...).
constexpr std::string_view name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kCompileFailed:
      return "compile_failed";
    case ErrorCode::kDriver:
      return "driver";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kNotCached:
      return "not_cached";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "internal";
}

/// What every failing call throws. The message says what failed, on what, and
/// what to do about it; `log()` carries a compiler's output when there is one.
/// Immutable, hence safe to pass between threads.
class LOGPJIT_API Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message, std::string log = {})
      : code_(code), message_(std::move(message)), log_(std::move(log)) {}

  ErrorCode code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }
  const std::string& log() const noexcept { return log_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorCode code_;
  std::string message_;
  std::string log_;
};

}  // namespace logpjit
