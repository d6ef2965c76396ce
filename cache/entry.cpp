// Encoding and the distrustful decoding of cache entries.
#include "cache/entry.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "cache/byte_reader.hpp"
#include "cache/digest.hpp"
#include "logpjit/error.hpp"

namespace logpjit::cache {
namespace {

constexpr std::string_view kMagic = "logpjit\n";
constexpr std::size_t kDigestBytes = sizeof(Digest);
// Frozen for all versions: magic, version, reserved, size; digest at the end.
constexpr std::size_t kFrozenBytes = 8 + 4 + 4 + 8;
// Version 1: kind, three sizes, five facts, reserved, compile time.
constexpr std::size_t kHeaderBytes = kFrozenBytes + 4 + 4 + 4 + 8 + 20 + 4 + 8;
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 20;

Decoded damaged(std::string reason) {
  return {EntryState::kDamaged, std::nullopt, std::move(reason)};
}

bool known(std::uint32_t kind) {
  return kind >= static_cast<std::uint32_t>(ImageKind::kCubin) &&
         kind <= static_cast<std::uint32_t>(ImageKind::kSharedObject);
}

LaunchFacts read_facts(ByteReader& reader) {
  const auto fact = [&reader] {
    return static_cast<std::int32_t>(reader.u32());
  };
  LaunchFacts facts;
  facts.registers = fact();
  facts.static_shared_bytes = fact();
  facts.stack_bytes = fact();
  facts.spill_bytes = fact();
  facts.parameter_bytes = fact();
  return facts;
}

void write_facts(ByteWriter& writer, const LaunchFacts& facts) {
  for (std::int32_t fact :
       {facts.registers, facts.static_shared_bytes, facts.stack_bytes,
        facts.spill_bytes, facts.parameter_bytes}) {
    writer.u32(static_cast<std::uint32_t>(fact));
  }
}

/// The part a digest has already vouched for, so what is wrong here was
/// written wrong.
Decoded decode_body(ByteReader reader) {
  const std::uint32_t kind = reader.u32();
  const std::uint32_t key_bytes = reader.u32();
  const std::uint32_t name_bytes = reader.u32();
  const std::uint64_t image_bytes = reader.u64();
  const LaunchFacts facts = read_facts(reader);
  const std::uint32_t reserved = reader.u32();
  const auto compile_ms = std::bit_cast<double>(reader.u64());
  Entry entry;
  entry.key_text = reader.text(key_bytes);
  entry.image.entry = reader.text(name_bytes);
  const auto image = reader.bytes(image_bytes);
  if (reader.failed() || reader.left() != 0) {
    return damaged("its parts do not add up to its size");
  }
  if (!known(kind)) return damaged(fmt::format("unknown image kind {}", kind));
  if (reserved != 0) return damaged("a reserved field is not zero");
  if (image.empty()) return damaged("the image is empty");
  if (!std::isfinite(compile_ms)) return damaged("no valid compile time");
  entry.image.kind = static_cast<ImageKind>(kind);
  entry.image.bytes.assign(image.begin(), image.end());
  entry.image.facts = facts;
  entry.image.compile_ms = compile_ms;
  return {EntryState::kGood, std::move(entry), {}};
}

}  // namespace

std::vector<std::byte> encode(std::string_view key_text, const Image& image) {
  const std::size_t size = kHeaderBytes + key_text.size() + image.entry.size() +
                           image.bytes.size() + kDigestBytes;
  if (image.bytes.empty() || size > kMaxEntryBytes ||
      key_text.size() > kMaxTextBytes || image.entry.size() > kMaxTextBytes) {
    throw Error(ErrorCode::kInternal,
                fmt::format("cache entry: an image of {} bytes with a key of "
                            "{} bytes cannot be stored",
                            image.bytes.size(), key_text.size()));
  }
  ByteWriter writer;
  writer.reserve(size);
  writer.text(kMagic);
  writer.u32(kEntryFormat);
  writer.u32(0);
  writer.u64(size);
  writer.u32(static_cast<std::uint32_t>(image.kind));
  writer.u32(static_cast<std::uint32_t>(key_text.size()));
  writer.u32(static_cast<std::uint32_t>(image.entry.size()));
  writer.u64(image.bytes.size());
  write_facts(writer, image.facts);
  writer.u32(0);
  writer.u64(std::bit_cast<std::uint64_t>(
      std::isfinite(image.compile_ms) ? image.compile_ms : 0.0));
  writer.text(key_text);
  writer.text(image.entry);
  writer.bytes(image.bytes);
  writer.bytes(digest(writer.written()));
  return writer.take();
}

Decoded decode(std::span<const std::byte> file) {
  if (file.size() < kFrozenBytes + kDigestBytes) {
    return damaged(fmt::format("only {} bytes long", file.size()));
  }
  const auto content = file.first(file.size() - kDigestBytes);
  ByteReader reader(content);
  if (reader.text(kMagic.size()) != kMagic) return damaged("wrong magic");
  const std::uint32_t version = reader.u32();
  const std::uint32_t reserved = reader.u32();
  const std::uint64_t size = reader.u64();
  if (size != file.size()) {
    return damaged(
        fmt::format("{} bytes long instead of {}", file.size(), size));
  }
  const Digest expected = digest(content);
  if (!std::equal(expected.begin(), expected.end(),
                  file.last(kDigestBytes).begin())) {
    return damaged("wrong digest");
  }
  if (version > kEntryFormat) {
    return {EntryState::kNewerFormat, std::nullopt,
            fmt::format("format version {} is newer than {}", version,
                        kEntryFormat)};
  }
  if (version == 0) return damaged("format version 0");
  if (reserved != 0) return damaged("a reserved field is not zero");
  return decode_body(reader);
}

}  // namespace logpjit::cache
