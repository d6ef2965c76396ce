// The text of a domain, as it stands in LOGPJIT_SPEC and LOGPJIT_TUNE.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "generator/manifest.hpp"

namespace logpjit::generator::scan {

/// What an integer parameter's type can hold.
struct IntegerRange {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

/// "fp32 bf16" for a type; "0 1" for a boolean; "128 256" or "1..1024" for an
/// integer, every number within `type`. Returns the domain, or the sentence on
/// what is wrong with it.
std::variant<Domain, std::string> parse_domain(std::string_view text,
                                               ParameterKind kind,
                                               IntegerRange type);

}  // namespace logpjit::generator::scan
