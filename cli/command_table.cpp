// The table of commands.
#include "cli/commands.hpp"

namespace logpjit::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> table = {
      {"devices", "List what kernels can run on here", attach_devices},
      {"generate", "Print the source of one kernel", attach_generate},
      {"compile", "Compile kernels into the cache; needs no GPU",
       attach_compile},
      {"run", "Run an operation on .npy files", attach_run},
      {"verify", "Run conformance cases on a device", attach_verify},
      {"bench", "Time an operation beside a read and a copy", attach_bench},
      {"pretune", "Measure launch configurations and keep the fastest",
       attach_pretune},
      {"report", "Show and compare reports, or make pages of them",
       attach_report},
      {"cache", "Look into and keep the cache of compiled kernels",
       attach_cache},
      {"scan", "Print the manifest of a kernel template", attach_scan},
  };
  return table;
}

}  // namespace logpjit::cli
