// The known name that a mistyped one most resembles.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace logpjit::cli {

/// The nearest of `known` when it is near enough to be meant: at most two
/// letters, or a third of the longer name, inserted, deleted, changed or
/// swapped.
std::optional<std::string> nearest(std::string_view name,
                                   const std::vector<std::string>& known);

/// "; did you mean 'logp'?" or nothing.
std::string suggestion(std::string_view name,
                       const std::vector<std::string>& known);

}  // namespace logpjit::cli
