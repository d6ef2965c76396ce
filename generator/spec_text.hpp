// The inverse of KernelSpec::text().
#pragma once

#include <optional>
#include <string_view>

#include "logpjit/kernel_spec.hpp"

namespace logpjit::generator {

/// Nothing when the text is not one that `KernelSpec::text()` of this family
/// writes. Fields that the operation leaves out have their defaults.
std::optional<KernelSpec> parse_spec_text(std::string_view text);

}  // namespace logpjit::generator
