// A report as one page for a browser.
#pragma once

#include <string>

#include "tuning/report.hpp"

namespace logpjit::tuning {

/// One self-contained document: no script, no font, nothing from a network.
/// Reads on a desktop and a phone, light and dark; each chart has its text.
std::string to_html(const Report& report);

}  // namespace logpjit::tuning
