// Vocabularies of known models, and what a trainer runs over them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "logpjit/device.hpp"
#include "logpjit/kernel_spec.hpp"
#include "runtime/config_lookup.hpp"

namespace logpjit::tuning {

struct ModelPreset {
  std::string_view name;
  std::int64_t vocab = 0;  ///< rows of the output embedding, padding included
  /// Models in whose config.json the number stands as `vocab_size`.
  std::string_view source;
};

std::span<const ModelPreset> model_presets();
/// Without regard to case; nothing when the name is unknown.
std::optional<ModelPreset> find_preset(std::string_view name);

/// Operations that are tuned when none are named.
std::vector<std::string> default_ops();
/// Row counts that are tuned when none are named: few on a CPU.
std::vector<std::int64_t> default_rows(DeviceKind kind);

/// An operation name to the specification that is timed under it: as parse_op,
/// and of a divergence the student's gradient, "kl_backward" in the usual
/// direction, "kl_reverse_backward" in the other.
std::optional<KernelSpec> parse_timed_op(std::string_view name);

struct ShapeRequest {
  std::vector<KernelSpec> ops;  ///< from parse_timed_op
  std::vector<DType> dtypes;
  std::vector<std::int64_t> vocabs;
  std::vector<std::int64_t> rows;
  /// Tensor-parallel sizes: a vocabulary is cut into so many equal parts, the
  /// last one shorter, and the longer is what is tuned. 1 = the whole.
  std::vector<std::int64_t> shards{1};
};

/// Every combination, each once, rows contiguous and aligned as they then are.
std::vector<runtime::TunedShape> make_shapes(const ShapeRequest& request);

}  // namespace logpjit::tuning
