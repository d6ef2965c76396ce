// A compiler that makes up its images.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/compiler.hpp"

namespace logpjit::testing {

/// The same source and target give the same bytes, different ones different
/// bytes. Safe to share between threads, as long as the public members are set
/// before.
class FakeCompiler final : public runtime::Compiler {
 public:
  explicit FakeCompiler(generator::Dialect dialect = generator::Dialect::kCuda)
      : dialect_(dialect) {}

  /// Change before use to be another compiler.
  std::string compiler_identity = "fake 1.0";
  std::string compiler_options = "-fake";
  /// Called at each compile, counted already; may throw Error to fail it, or
  /// sleep to be slow.
  std::function<void(const generator::Source&, const std::string& target)>
      on_compile;

  /// Bytes that an image spills; none without.
  std::function<std::int32_t(const generator::Source&)> on_spill;

  int compiles() const { return compiles_; }

  std::string identity() const override { return compiler_identity; }
  std::string options() const override { return compiler_options; }
  generator::Dialect dialect() const override { return dialect_; }

  cache::Image compile(const generator::Source& source,
                       const std::string& target) override {
    ++compiles_;
    if (on_compile) on_compile(source, target);
    const std::string text = target + '\n' + source.text;
    const auto bytes = std::as_bytes(std::span(text));
    cache::Image image;
    image.kind = dialect_ == generator::Dialect::kCuda
                     ? cache::ImageKind::kCubin
                     : cache::ImageKind::kSharedObject;
    image.bytes.assign(bytes.begin(), bytes.end());
    image.entry = source.name_expression;
    image.facts = {.registers = 32,
                   .static_shared_bytes = 0,
                   .stack_bytes = 0,
                   .spill_bytes = on_spill ? on_spill(source) : 0,
                   .parameter_bytes = 64};
    image.compile_ms = 1;
    return image;
  }

 private:
  const generator::Dialect dialect_;
  std::atomic<int> compiles_{0};
};

}  // namespace logpjit::testing
