// Words that only the preludes may use, and what to write instead.
#include "generator/scan/forbidden_words.hpp"

#include <fmt/format.h>

#include <array>
#include <span>
#include <utility>

namespace logpjit::generator::scan {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 12>
    kReplacements{{{"__syncthreads", "sync_threads()"},
                   {"__syncwarp", "sync_warp()"},
                   {"__shfl_xor_sync", "shuffle_xor(value, mask)"},
                   {"__shfl_sync", "shuffle(value, lane)"},
                   {"__ballot_sync", "ballot(value)"},
                   {"__popc", "count_bits(value)"},
                   {"__fmaf_rn", "fma(a, b, c)"},
                   {"__fdiv_rn", "divide(a, b)"},
                   {"__shared__", "shared_memory<T>(byte_offset)"},
                   {"__device__", "LOGPJIT_DEVICE"},
                   {"__forceinline__", "LOGPJIT_DEVICE"},
                   {"__global__", "LOGPJIT_KERNEL(block, min_blocks)"}}};

std::string compiler_word_message(std::string_view word) {
  for (const auto& [own, replacement] : kReplacements) {
    if (word == own) {
      return fmt::format("'{}' belongs to one compiler: use {} of the prelude",
                         word, replacement);
    }
  }
  return fmt::format(
      "'{}' belongs to one compiler: use what the prelude offers instead",
      word);
}

bool is_assembly(std::string_view word) {
  return word == "asm" || word == "__asm__" || word == "__asm";
}

// Message for the word at the front, given those that follow it; empty if it
// breaks no rule.
std::string word_message(std::span<const Token> tokens) {
  const std::string_view word = tokens[0].text;
  const std::string_view next =
      tokens.size() > 1 ? std::string_view(tokens[1].text) : "";
  if (is_assembly(word)) {
    return "inline assembly belongs in prelude/device.h: call a function of "
           "the prelude";
  }
  if (word == "extern" && next.starts_with("\"C")) {
    return "extern \"C\" is not allowed: the generator names kernels, leave it "
           "out";
  }
  if (word == "extern" && next == "__shared__") {
    return "extern __shared__ is not allowed: take dynamic shared memory from "
           "shared_memory<T>(byte_offset)";
  }
  return word.starts_with("__") ? compiler_word_message(word) : "";
}

}  // namespace

void check_words(const std::vector<Token>& tokens, Diagnostics& diagnostics) {
  const std::span all(tokens);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind != TokenKind::kWord) continue;
    // Reported as one with the `extern` before it.
    const bool after_extern = i > 0 && tokens[i - 1].text == "extern" &&
                              tokens[i].text == "__shared__";
    if (after_extern) continue;
    std::string message = word_message(all.subspan(i));
    if (!message.empty()) {
      diagnostics.add(tokens[i].position, std::move(message));
    }
  }
}

}  // namespace logpjit::generator::scan
