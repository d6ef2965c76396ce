// Checks a JSON document against a JSON Schema, as far as the project's own
// schemas go.
#pragma once

#include <string>
#include <vector>

namespace logpjit::testing {

/// One line for each fault, "path: what"; none when `document` is valid.
/// Understands type, const, enum, properties, required, additionalProperties,
/// items, minimum, maximum, exclusiveMinimum, pattern, oneOf and $ref within
/// the schema; any other keyword that could refuse something is a fault.
std::vector<std::string> schema_faults(const std::string& schema,
                                       const std::string& document);

}  // namespace logpjit::testing
