// How the program fails.
#include "cli/failure.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "cli/command.hpp"

namespace logpjit::cli {

void print_failure(std::string_view message, std::string_view log) {
  fmt::print(stderr, "logpjit: error: {}\n", message);
  if (log.empty()) return;
  fmt::print(stderr, "{}{}", log, log.ends_with('\n') ? "" : "\n");
}

int exit_code(ErrorCode code) {
  return code == ErrorCode::kInvalidArgument ? kWrongUsage : kFailed;
}

}  // namespace logpjit::cli
