// The host's C++ compiler as a Compiler: sources to shared objects.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/compiler.hpp"

namespace logpjit::runtime {

struct HostCompilerOptions {
  /// A program, by path or by name on PATH, with or without arguments
  /// ("ccache g++"); empty = the first there is of c++, g++, clang++.
  std::string compiler;
  double timeout_s = 120;  ///< for each run of it
};

/// Runs the compiler as a process of its own, without a shell, in a private
/// directory that is removed again. The same source, target and compiler give
/// the same bytes. Safe to share between threads, which compile in parallel.
class HostCompiler final : public Compiler {
 public:
  /// Runs nothing yet.
  explicit HostCompiler(HostCompilerOptions options = {});

  /// "g++ (Debian 12.2.0-14) 12.2.0; x86_64-linux-gnu; 1f2e...": version line,
  /// machine and digest of the compiler's file. Asked for once.
  std::string identity() const override;
  std::string options() const override;
  generator::Dialect dialect() const override {
    return generator::Dialect::kHost;
  }

  /// Targets: "<machine>-linux" for the compiler's own machine, and
  /// "x86_64-v3-linux".
  cache::Image compile(const generator::Source& source,
                       const std::string& target) override;

 private:
  struct Toolchain {
    std::vector<std::string> command;
    std::string machine;
    std::string identity;
  };

  const Toolchain& toolchain() const;
  const Toolchain* known_toolchain() const;  ///< null until it was found
  Toolchain find_toolchain() const;
  std::optional<Toolchain> probe(const std::string& compiler) const;
  std::optional<std::string> ask(const std::vector<std::string>& command,
                                 const std::string& question) const;
  std::vector<std::string> command_for(const Toolchain& tools,
                                       const std::string& target) const;

  const HostCompilerOptions options_;
  mutable std::mutex mutex_;  // taken with a CompileGate held
  mutable std::optional<Toolchain> toolchain_;
};

}  // namespace logpjit::runtime
