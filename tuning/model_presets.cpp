// Vocabularies of known models: `vocab_size` in the config.json that is
// published with the weights, of its text part where there are several.
#include "tuning/model_presets.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace logpjit::tuning {
namespace {

constexpr std::array kPresets{
    ModelPreset{"qwen2.5", 151936, "Qwen/Qwen2.5-0.5B, 1.5B, 3B"},
    ModelPreset{"qwen2.5-7b", 152064, "Qwen/Qwen2.5-7B, 14B, 32B, 72B"},
    ModelPreset{"qwen3", 151936, "Qwen/Qwen3-8B, Qwen3-30B-A3B"},
    ModelPreset{"qwen3.5", 248320, "Qwen/Qwen3.5-27B"},
    ModelPreset{"llama2", 32000, "meta-llama/Llama-2-7b-hf"},
    ModelPreset{"llama3", 128256, "meta-llama/Meta-Llama-3-8B, Llama-3.1-8B"},
    ModelPreset{"llama4", 202048, "meta-llama/Llama-4-Scout-17B-16E"},
    ModelPreset{"gemma2", 256000, "google/gemma-2-9b-it"},
    ModelPreset{"gemma3", 262144, "google/gemma-3-270m, gemma-3-1b-it"},
    ModelPreset{"gemma3-vision", 262208, "google/gemma-3-4b-it, 12b, 27b"},
    ModelPreset{"deepseek-v3", 129280, "deepseek-ai/DeepSeek-V3, V3.2"},
    ModelPreset{"gpt-oss", 201088, "openai/gpt-oss-20b, gpt-oss-120b"},
    ModelPreset{
        "mistral", 131072,
        "mistralai/Mistral-Nemo-Base-2407, Mistral-Small-24B-Base-2501"},
    ModelPreset{"mistral-7b", 32768, "mistralai/Mistral-7B-v0.3"},
    ModelPreset{"glm-4.5", 151552, "zai-org/GLM-4.5, GLM-4.5-Air"},
    ModelPreset{"kimi-k2", 163840, "moonshotai/Kimi-K2-Instruct"},
    ModelPreset{"minimax-m1", 200064, "MiniMaxAI/MiniMax-M1-80k"},
    ModelPreset{"phi-4", 100352, "microsoft/phi-4"},
    ModelPreset{"smollm2", 49152, "HuggingFaceTB/SmolLM2-135M"},
    ModelPreset{"gpt2", 50257, "openai-community/gpt2"},
};

bool equal_without_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

/// Contiguous rows: whether each starts at a multiple of 16 bytes.
bool is_aligned(std::int64_t rows, std::int64_t vocab, DType dtype) {
  constexpr std::int64_t kWordBytes = 16;
  return rows <= 1 ||
         vocab * static_cast<std::int64_t>(size_of(dtype)) % kWordBytes == 0;
}

}  // namespace

std::span<const ModelPreset> model_presets() { return kPresets; }

std::optional<ModelPreset> find_preset(std::string_view name) {
  for (const ModelPreset& preset : kPresets) {
    if (equal_without_case(preset.name, name)) return preset;
  }
  return std::nullopt;
}

std::vector<std::string> default_ops() {
  return {"logp",         "logp_backward",         "logp_with_grad",
          "logp+entropy", "logp+entropy_backward", "kl",
          "kl_backward"};
}

std::vector<std::int64_t> default_rows(DeviceKind kind) {
  if (kind == DeviceKind::kCpu) return {64};
  return {1, 64, 1024, 8192, 32768};
}

std::optional<KernelSpec> parse_timed_op(std::string_view name) {
  auto spec = parse_op(name);
  if (spec && has(spec->terms, Terms::kKl) && spec->pass != Pass::kForward) {
    spec->grad_a = name.starts_with("kl_reverse");
    spec->grad_b = !spec->grad_a;
  }
  return spec;
}

std::vector<runtime::TunedShape> make_shapes(const ShapeRequest& request) {
  std::vector<runtime::TunedShape> shapes;
  for (const std::int64_t vocab : request.vocabs) {
    for (const std::int64_t shard : request.shards) {
      for (const DType dtype : request.dtypes) {
        for (const KernelSpec& op : request.ops) {
          for (const std::int64_t rows : request.rows) {
            runtime::TunedShape shape{.spec = op, .rows = rows};
            shape.spec.vocab = (vocab + shard - 1) / shard;
            shape.spec.logits = dtype;
            // A member that does not matter stays as the calls leave it.
            if (has(op.terms, Terms::kKl)) shape.spec.other = dtype;
            shape.spec.aligned = is_aligned(rows, shape.spec.vocab, dtype);
            if (std::ranges::find(shapes, shape) == shapes.end()) {
              shapes.push_back(shape);
            }
          }
        }
      }
    }
  }
  return shapes;
}

}  // namespace logpjit::tuning
