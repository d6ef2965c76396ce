// How the program fails.
#pragma once

#include <string_view>

#include "logpjit/error.hpp"

namespace logpjit::cli {

/// "logpjit: error: MESSAGE" on stderr, then a compiler's log if there is one.
void print_failure(std::string_view message, std::string_view log = {});

/// kWrongUsage for what the caller got wrong, kFailed for the rest.
int exit_code(ErrorCode code);

}  // namespace logpjit::cli
