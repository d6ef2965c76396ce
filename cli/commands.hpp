// What each command's file gives to the table.
#pragma once

#include "cli/command.hpp"

namespace logpjit::cli {

Action attach_devices(CLI::App& app);
Action attach_generate(CLI::App& app);
Action attach_compile(CLI::App& app);
Action attach_run(CLI::App& app);
Action attach_verify(CLI::App& app);
Action attach_bench(CLI::App& app);
Action attach_pretune(CLI::App& app);
Action attach_report(CLI::App& app);
Action attach_cache(CLI::App& app);
Action attach_scan(CLI::App& app);

}  // namespace logpjit::cli
