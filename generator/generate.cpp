// Writes the source of exactly one kernel.
#include "generator/generate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "generator/content.hpp"
#include "logpjit/error.hpp"

namespace logpjit::generator {
namespace {

/// A file without the lines that only matter to a file: what it includes comes
/// before it, once.
void append_body(std::string& text, std::string_view path) {
  std::string_view content = embedded_file(path);
  text += fmt::format("// ---- {}\n", path);
  while (!content.empty()) {
    const std::size_t end = std::min(content.find('\n'), content.size() - 1);
    const std::string_view line = content.substr(0, end + 1);
    if (!line.starts_with("#include \"") && !line.starts_with("#pragma once")) {
      text += line;
    }
    content.remove_prefix(end + 1);
  }
}

[[noreturn]] void reject(const KernelManifest& kernel, std::string_view key,
                         std::string_view value, std::string_view why) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: {}={} {}", kernel.name, key, value, why));
}

std::string parameter_value(const KernelManifest& kernel,
                            const TemplateParameter& parameter,
                            const KernelSpec& spec,
                            const LaunchConfig& config) {
  const std::string key = parameter.key();
  std::string value;
  if (parameter.role == ParameterRole::kSpec) {
    value = spec_value(spec, key);
  } else if (const std::optional<int> tuned = config.find(key)) {
    value = fmt::format("{}", *tuned);
  } else {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: the launch configuration '{}' lacks {}",
                            kernel.name, config.text(), key));
  }
  if (!parameter.domain.contains(value)) {
    reject(kernel, key, value,
           fmt::format("is not one of {}", parameter.domain.text()));
  }
  return value;
}

std::string argument_text(const TemplateParameter& parameter,
                          const std::string& value) {
  switch (parameter.kind) {
    case ParameterKind::kType:
      return fmt::format("logpjit::device::{}", value);
    case ParameterKind::kBoolean:
      return value == "0" ? "false" : "true";
    case ParameterKind::kInteger:
      return value;
  }
  return value;
}

std::string template_arguments(const KernelManifest& kernel,
                               const KernelSpec& spec,
                               const LaunchConfig& config) {
  std::string text;
  for (const TemplateParameter& parameter : kernel.parameters) {
    if (!text.empty()) text += ", ";
    text += argument_text(parameter,
                          parameter_value(kernel, parameter, spec, config));
  }
  return text;
}

void check_config_names(const KernelManifest& kernel,
                        const LaunchConfig& config) {
  for (const auto& [key, value] : config.values()) {
    const bool known =
        std::any_of(kernel.parameters.begin(), kernel.parameters.end(),
                    [&key = key](const TemplateParameter& parameter) {
                      return parameter.role == ParameterRole::kTunable &&
                             parameter.key() == key;
                    });
    if (!known) {
      reject(kernel, key, fmt::format("{}", value),
             "is no tunable of this kernel");
    }
  }
}

std::string_view prelude_path(Dialect dialect) {
  return dialect == Dialect::kCuda ? "prelude/device.h" : "prelude/host.h";
}

std::string instantiation(Dialect dialect, const std::string& instance,
                          const std::string& argument_type) {
  if (dialect == Dialect::kCuda) {
    return fmt::format("template __global__ void {}(const {});\n", instance,
                       argument_type);
  }
  return fmt::format("LOGPJIT_HOST_ENTRY({}, {})\n", instance, argument_type);
}

Source plan_kernel(std::string_view name, const KernelSpec& spec,
                   const LaunchConfig& config, Dialect dialect,
                   const Manifest& manifest) {
  const KernelManifest* kernel = manifest.find(name);
  const TemplateManifest* file = manifest.template_of(name);
  if (kernel == nullptr || file == nullptr) {
    throw Error(ErrorCode::kInternal,
                fmt::format("the manifest has no kernel '{}'", name));
  }
  check_config_names(*kernel, config);
  const std::string instance =
      fmt::format("{}<{}>", kernel->qualified_name,
                  template_arguments(*kernel, spec, config));
  Source source;
  source.dialect = dialect;
  source.kernel = name;
  source.spec_text = spec.text();
  source.config = config;
  source.name_expression =
      fmt::format("(void(*)(const {}))&{}", kernel->argument_type, instance);
  source.instantiation =
      instantiation(dialect, instance, kernel->argument_type);
  source.fingerprint = content_digest(embedded_file(prelude_path(dialect)));
  for (const ClosureFile& part : file->closure) {
    source.fingerprint += fmt::format(" {}:{}", part.path, part.digest);
  }
  source.fingerprint += fmt::format(" {}", source.instantiation);
  return source;
}

}  // namespace

Source plan(const KernelSpec& spec, const LaunchConfig& config, Dialect dialect,
            const Manifest& manifest) {
  return plan_kernel(kernel_name(spec, config), spec, config, dialect,
                     manifest);
}

Source generate(const KernelSpec& spec, const LaunchConfig& config,
                Dialect dialect, const Manifest& manifest) {
  return generate_kernel(kernel_name(spec, config), spec, config, dialect,
                         manifest);
}

Source generate_kernel(std::string_view name, const KernelSpec& spec,
                       const LaunchConfig& config, Dialect dialect,
                       const Manifest& manifest) {
  Source source = plan_kernel(name, spec, config, dialect, manifest);
  source.text = fmt::format("// {}\n// {}\n", source.spec_text, config.text());
  append_body(source.text, prelude_path(dialect));
  for (const ClosureFile& part : manifest.template_of(name)->closure) {
    append_body(source.text, part.path);
  }
  source.text += fmt::format("// ---- instance\n{}", source.instantiation);
  return source;
}

}  // namespace logpjit::generator
