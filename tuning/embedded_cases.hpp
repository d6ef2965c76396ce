// The project's own conformance cases, carried in the program.
#pragma once

#include <string_view>

namespace logpjit::tuning {

/// The text of tests/conformance/data/logprob-cases.json.
std::string_view embedded_cases();

}  // namespace logpjit::tuning
