// What logpjit-scan says of a template: its kernels, their template parameters
// with domains, and their run-time arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace logpjit::generator {

/// The values a parameter may take: either a list of names or integers, or a
/// closed range of integers.
struct Domain {
  std::vector<std::string> values;  ///< empty when a range
  std::int64_t low = 0;
  std::int64_t high = 0;

  bool contains(std::string_view value) const;
  /// "fp32 bf16 fp16" or "1..1073741824", as written in the template.
  std::string text() const;
  bool operator==(const Domain&) const = default;
};

enum class ParameterKind { kType, kInteger, kBoolean };
/// Specification parameters change what is computed; tunables only how fast.
enum class ParameterRole { kSpec, kTunable };

struct TemplateParameter {
  std::string name;  ///< as in the template: "Logit", "kBlock"
  ParameterKind kind = ParameterKind::kInteger;
  ParameterRole role = ParameterRole::kSpec;
  Domain domain;

  /// The name in specs and configs: "kBlock" -> "block", "kMinBlocks" ->
  /// "min_blocks", "Logit" -> "logit".
  std::string key() const;
  bool operator==(const TemplateParameter&) const = default;
};

/// One member of the kernel's argument struct.
struct ArgumentField {
  std::string name;
  std::string type;  ///< canonical spelling: "const void *", "long long", ...
  std::int64_t offset = 0;
  std::int64_t size = 0;
  bool operator==(const ArgumentField&) const = default;
};

struct KernelManifest {
  std::string name;  ///< unqualified: "row_statistics"
  std::string qualified_name;
  std::string summary;  ///< first sentence of the doc comment
  std::string file;     ///< relative to templates/
  int line = 0;
  std::vector<TemplateParameter> parameters;  ///< in template order
  std::string argument_type;                  ///< qualified struct name
  std::int64_t argument_size = 0;
  std::vector<ArgumentField> arguments;
  bool operator==(const KernelManifest&) const = default;
};

struct ClosureFile {
  std::string path;    ///< relative to templates/
  std::string digest;  ///< XXH3-128 of the content, 32 hex digits
  bool operator==(const ClosureFile&) const = default;
};

/// One template file.
struct TemplateManifest {
  std::string file;
  std::vector<ClosureFile> closure;  ///< includes before includers
  std::vector<KernelManifest> kernels;
  bool operator==(const TemplateManifest&) const = default;
};

/// All of templates/, or one user template.
struct Manifest {
  static constexpr int kVersion = 1;
  std::vector<TemplateManifest> templates;

  const KernelManifest* find(std::string_view kernel) const;
  const TemplateManifest* template_of(std::string_view kernel) const;
  bool operator==(const Manifest&) const = default;
};

/// JSON text as logpjit-scan prints it; throws Error{kInvalidArgument} with
/// the JSON path of what is wrong.
Manifest parse_manifest(std::string_view json);
std::string to_json(const Manifest& manifest);

/// The manifest and template files the build embedded.
const Manifest& embedded_manifest();
/// Content of an embedded file ("common/lanes.cuh"); Error{kInternal} if
/// there is none.
std::string_view embedded_file(std::string_view path);

}  // namespace logpjit::generator
