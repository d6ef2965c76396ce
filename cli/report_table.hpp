// Reports as tables for a terminal.
#pragma once

#include <string>

#include "tuning/report.hpp"

namespace logpjit::cli {

/// A heading, a row for each entry, and a closing line that counts.
std::string report_table(const tuning::Report& report);
/// The candidates of each entry, the fastest first.
std::string candidate_tables(const tuning::Report& report);

}  // namespace logpjit::cli
