// Writes images as C++ initialisers.
#include "runtime/fallback/embed/image_source.hpp"

#include <fmt/format.h>

#include "logpjit/error.hpp"

namespace logpjit::runtime::embed {
namespace {

constexpr std::string_view kHead =
    R"(// Written by logpjit-embed-fallback during the build.
#include "runtime/fallback/images.hpp"

namespace logpjit::runtime {{
namespace {{

using std::string_view_literals::operator""sv;

constexpr std::array<EmbeddedImage, {}> kImages{{{{
)";

constexpr std::string_view kTail = R"(}}}};

}}  // namespace

std::span<const EmbeddedImage> embedded_images() {{ return kImages; }}

std::string_view why_no_cuda_images() {{ return {}; }}

}}  // namespace logpjit::runtime
)";

constexpr std::size_t kLineBytes = 64;

/// A literal of any bytes, some to a line; octal escapes of three digits join
/// nothing that follows.
std::string literal(std::string_view bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i % kLineBytes == 0) text += i == 0 ? "\"" : "\"\n    \"";
    const auto c = static_cast<unsigned char>(bytes[i]);
    const bool plain = c > ' ' && c <= '~' && c != '"' && c != '\\' && c != '?';
    text += plain ? std::string(1, bytes[i]) : fmt::format("\\{:03o}", c);
  }
  return text.empty() ? "\"\"sv" : text + "\"sv";
}

std::string_view bytes_of(const cache::Image& image) {
  return {reinterpret_cast<const char*>(image.bytes.data()),
          image.bytes.size()};
}

std::string_view kind_name(cache::ImageKind kind) {
  return kind == cache::ImageKind::kPtx ? "kPtx" : "kSharedObject";
}

}  // namespace

std::string image_source(const std::vector<BuiltImage>& images,
                         std::string_view why_no_cuda) {
  std::string text = fmt::format(kHead, images.size());
  for (const BuiltImage& built : images) {
    text += fmt::format("{{{}, {}, cache::ImageKind::{}, {},\n    {}}},\n",
                        literal(built.kernel), literal(built.target),
                        kind_name(built.image.kind), literal(built.image.entry),
                        literal(bytes_of(built.image)));
  }
  return text + fmt::format(kTail, literal(why_no_cuda));
}

std::string with_older_version(std::string ptx) {
  // A hint for tools, unknown before CUDA 12.3.
  constexpr std::string_view kHint = "\t.pragma \"used_bytes_mask";
  for (std::size_t at = ptx.find(kHint); at != std::string::npos;
       at = ptx.find(kHint, at)) {
    ptx.erase(at, ptx.find('\n', at) + 1 - at);
  }
  constexpr std::string_view kVersion = "\n.version ";
  const std::size_t at = ptx.find(kVersion);
  if (at == std::string::npos) {
    throw Error(ErrorCode::kInternal, "PTX without a version line");
  }
  const std::size_t begin = at + kVersion.size();
  return ptx.replace(begin, ptx.find('\n', begin) - begin, "8.0");
}

}  // namespace logpjit::runtime::embed
