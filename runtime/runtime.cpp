// The public face of Engine and Program.
#include "logpjit/runtime.hpp"

#include <exception>

#include "runtime/engine.hpp"

namespace logpjit {

const KernelSpec& Kernel::spec() const { return program_->spec(); }

const LaunchConfig& Kernel::config(std::int64_t rows) const {
  return program_->variant(rows).config;
}

ConfigSource Kernel::config_source(std::int64_t rows) const {
  return program_->variant(rows).source;
}

Runtime::Runtime(const Options& options)
    : engine_(std::make_unique<runtime::Engine>(options)) {}
Runtime::Runtime(std::unique_ptr<runtime::Engine> engine)
    : engine_(std::move(engine)) {}
Runtime::~Runtime() = default;
Runtime::Runtime(Runtime&&) noexcept = default;
Runtime& Runtime::operator=(Runtime&&) noexcept = default;

const DeviceInfo& Runtime::device() const { return engine_->device().info(); }

namespace {

/// Readies what calls of `spec` will launch.
void prepare_one(runtime::Engine& engine, const KernelSpec& spec) {
  if (engine.find_program(spec, nullptr) != nullptr) return;
  runtime::Fallback& fallback = engine.fallback();
  fallback.prepare(runtime::fallback_kernel(spec));
  if (spec.pass == Pass::kWithGrad) {
    fallback.prepare(runtime::FallbackKernel::kStatistics);
  }
}

}  // namespace

void Runtime::prepare(std::span<const KernelSpec> specs) {
  std::exception_ptr first_failure;
  for (const KernelSpec& spec : specs) {
    try {
      prepare_one(*engine_, spec);
    } catch (...) {
      if (!first_failure) first_failure = std::current_exception();
    }
  }
  if (first_failure) std::rethrow_exception(first_failure);
}

Kernel Runtime::kernel(const KernelSpec& spec) {
  return Kernel(&engine_->prepare(spec));
}

Kernel Runtime::kernel(const KernelSpec& spec, const LaunchConfig& config) {
  return Kernel(&engine_->fixed_program(spec, config));
}

Counters Runtime::counters() const { return engine_->counters(); }

}  // namespace logpjit
