// Lists of kernels in a file, one a line.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arch.hpp"
#include "logpjit/kernel_spec.hpp"

namespace logpjit::cli {

/// A line: which kernel, for which architectures.
struct WantedKernel {
  KernelSpec spec;
  std::vector<Arch> archs;
  std::string config;  ///< "block=512,..."; empty = the untuned ones
};

/// "op=logp dtype=bf16 vocab=151936 arch=sm_90a,sm_100a": the fields of
/// `KernelSpec::text()` in any order (so such a text is a line), `dtype` for
/// `logits`, then `arch` and `config`. What is left out has its default; `op`,
/// `logits`, `vocab` and an architecture must be there. `default_archs` serve
/// where the line names none. Error{kInvalidArgument} names the field.
WantedKernel parse_wanted(std::string_view line,
                          const std::vector<Arch>& default_archs);

/// The lines of a file; empty ones and those that begin with '#' are skipped.
/// Error{kIo} when it cannot be read, Error{kInvalidArgument} with file and
/// line number for what is no kernel and for a file without any.
std::vector<WantedKernel> read_spec_list(
    const std::filesystem::path& file, const std::vector<Arch>& default_archs);

}  // namespace logpjit::cli
