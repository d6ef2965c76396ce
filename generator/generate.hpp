// KernelSpec + LaunchConfig + manifest -> Source.
#pragma once

#include <string>
#include <string_view>

#include "generator/manifest.hpp"
#include "generator/source.hpp"

namespace logpjit::generator {

/// Name of the kernel that serves `spec` under `config`. Error{kUnsupported}
/// when no template does.
std::string kernel_name(const KernelSpec& spec, const LaunchConfig& config);

/// The value of a specification parameter ("vocab", "logit", "terms", ...) as
/// written in a domain. Error{kInternal} for a key no specification has.
std::string spec_value(const KernelSpec& spec, std::string_view key);

/// All of a source but its text, at the price of a cache look-up: checks every
/// parameter against its domain in `manifest`. Error{kInvalidArgument} names
/// the field of spec or config that is out of its domain, unknown or missing.
Source plan(const KernelSpec& spec, const LaunchConfig& config, Dialect dialect,
            const Manifest& manifest);

/// Checks every parameter against its domain in `manifest` and writes the whole
/// source: prelude, include closure, one explicit instantiation. Pure: equal
/// arguments give equal text. Error{kInvalidArgument} names the field of spec
/// or config that is out of its domain, unknown or missing.
Source generate(const KernelSpec& spec, const LaunchConfig& config,
                Dialect dialect, const Manifest& manifest);

/// The same for a kernel by its name: one that no specification asks for, such
/// as those that measure what memory allows. `spec` gives the values of its
/// specification parameters, if it has any.
Source generate_kernel(std::string_view kernel, const KernelSpec& spec,
                       const LaunchConfig& config, Dialect dialect,
                       const Manifest& manifest);

}  // namespace logpjit::generator
