// Source to cubin (or PTX) with NVRTC. Needs no GPU, driver or include path.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/compiler.hpp"
#include "runtime/cuda/nvrtc.hpp"

namespace logpjit::runtime::cuda {

/// Safe to share between threads; NVRTC itself runs compiles largely one after
/// another, so compiling many kernels in parallel wants processes.
class NvrtcCompiler final : public Compiler {
 public:
  /// Opens nothing yet.
  NvrtcCompiler(const std::string& explicit_file,
                const std::vector<std::filesystem::path>& folders);

  /// "nvrtc build-id <hex>", from memory when NVRTC is loaded, else from the
  /// file that would be: no library is opened for it.
  std::string identity() const override;
  std::string options() const override;
  generator::Dialect dialect() const override {
    return generator::Dialect::kCuda;
  }
  /// `target` is "sm_XX" or "sm_XXa" for a cubin, "compute_XX" for PTX.
  cache::Image compile(const generator::Source& source,
                       const std::string& target) override;

  /// Version and file of the NVRTC in use, for `devices` and reports.
  std::string describe() const;

 private:
  const Nvrtc& nvrtc() const;

  LibrarySearch search_;
  mutable std::mutex mutex_;  // taken with a CompileGate held
  mutable std::unique_ptr<const Nvrtc> nvrtc_;
  mutable std::optional<std::string> identity_;
};

/// What `--ptxas-options=-v` printed about the kernel.
cache::LaunchFacts parse_ptxas_report(std::string_view log);

}  // namespace logpjit::runtime::cuda
