// The rules that a file's words alone decide.
#pragma once

#include <vector>

#include "generator/scan/tokens.hpp"

namespace logpjit::generator::scan {

/// Reports compiler-owned identifiers ("__..."), inline assembly, extern "C"
/// and `extern __shared__`, wherever they stand, inactive branches included.
void check_words(const std::vector<Token>& tokens, Diagnostics& diagnostics);

}  // namespace logpjit::generator::scan
