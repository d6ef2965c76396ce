// Architectures that code can be made for without having one.
#include "cli/arch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cstdint>
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

/// Most dynamic shared memory of a block, KiB, by compute capability: the CUDA
/// programming guide's table of technical specifications.
std::int64_t shared_kib(int major, int minor) {
  struct Row {
    int major;
    int minor;  ///< -1 = any
    std::int64_t kib;
  };
  constexpr std::array kRows{
      Row{7, 5, 64},   Row{8, 0, 163},   Row{8, 7, 163},   Row{8, -1, 99},
      Row{9, -1, 227}, Row{10, -1, 227}, Row{11, -1, 227}, Row{12, -1, 99}};
  for (const Row& row : kRows) {
    const bool same_minor = row.minor == minor || row.minor < 0;
    if (row.major == major && same_minor) return row.kib;
  }
  return 48;  // what every device has
}

}  // namespace

Arch parse_arch(std::string_view text) {
  Arch arch;
  arch.name = text;
  constexpr std::int64_t kKibi = 1024;
  if (text == "cpu") {
    arch.device.shared_bytes_per_block = 227 * kKibi;
    return arch;
  }
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
  arch.device.shared_bytes_per_block =
      kKibi * shared_kib(arch.device.major, arch.device.minor);
  return arch;
}

}  // namespace logpjit::cli
