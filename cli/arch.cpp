// Architectures that code can be made for without having one.
#include "cli/arch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>
#include <vector>

#include "cli/suggest.hpp"
#include "logpjit/error.hpp"

namespace logpjit::cli {
namespace {

constexpr std::string_view kPrefix = "sm_";

/// 90 of "sm_90a"; whether the compiler knows it is the compiler's to say.
std::optional<int> number_of(std::string_view text) {
  if (!text.starts_with(kPrefix)) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  int number = 0;
  const auto [end, fault] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix(
      end, static_cast<std::size_t>(text.data() + text.size() - end));
  const bool known = suffix.empty() || suffix == "a" || suffix == "f";
  if (fault != std::errc{} || number < 10 || !known) return std::nullopt;
  return number;
}

}  // namespace

Arch parse_arch(std::string_view text) {
  Arch arch;
  arch.name = text;
  if (text == "cpu") return arch;
  const auto number = number_of(text);
  if (!number) {
    const std::vector<std::string> examples = {
        "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a", "cpu"};
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("--arch: '{}' is unknown{} (such as: {})", text,
                    suggestion(text, examples), fmt::join(examples, ", ")));
  }
  arch.device.id.kind = DeviceKind::kCuda;
  arch.device.major = *number / 10;
  arch.device.minor = *number % 10;
  return arch;
}

}  // namespace logpjit::cli
