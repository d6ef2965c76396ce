// The entry format: round trip, and refusal of everything else.
#include "cache/entry.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "cache/digest.hpp"
#include "logpjit/error.hpp"
#include "tests/support/cache/samples.hpp"

namespace logpjit::cache {
namespace {

using logpjit::testing::sample_image;
using logpjit::testing::sample_key;

std::vector<std::byte> sample_entry(std::size_t image_bytes = 300) {
  return encode(sample_key(1).text(), sample_image(1, image_bytes));
}

/// Makes the digest right again, as a hostile writer would.
void seal(std::vector<std::byte>& file) {
  const auto content = std::span(file).first(file.size() - 16);
  const Digest right = digest(content);
  std::copy(right.begin(), right.end(), file.end() - 16);
}

TEST(EntryTest, RoundTrip) {
  for (auto kind :
       {ImageKind::kCubin, ImageKind::kPtx, ImageKind::kSharedObject}) {
    Image image = sample_image(7);
    image.kind = kind;
    image.facts = {1, 2, -1, std::numeric_limits<int>::max(), -5};
    const Decoded decoded = decode(encode("spec: x\n", image));
    ASSERT_EQ(decoded.state, EntryState::kGood) << decoded.reason;
    EXPECT_EQ(decoded.entry->key_text, "spec: x\n");
    EXPECT_EQ(decoded.entry->image, image);
  }
}

TEST(EntryTest, KeyTextIsReadableInTheFile) {
  const auto file = sample_entry();
  const std::string text(reinterpret_cast<const char*>(file.data()),
                         file.size());
  EXPECT_EQ(text.rfind("logpjit\n", 0), 0u);
  EXPECT_NE(text.find("\nspec: op=logp vocab=1\n"), std::string::npos);
}

TEST(EntryTest, EncodeRefusesWhatNobodyWouldRead) {
  EXPECT_THROW(encode("k: v\n", sample_image(1, 0)), Error);
  Image huge;
  huge.bytes.resize(kMaxEntryBytes);
  EXPECT_THROW(encode("k: v\n", huge), Error);
}

TEST(EntryTest, StoresNoTimeThatIsNotFinite) {
  Image image = sample_image(1, 8);
  image.compile_ms = std::nan("");
  const Decoded decoded = decode(encode("k: v\n", image));
  ASSERT_TRUE(decoded.entry);
  EXPECT_EQ(decoded.entry->image.compile_ms, 0);
}

TEST(EntryTest, EveryTruncationIsDamage) {
  const auto file = sample_entry();
  for (std::size_t size = 0; size < file.size(); ++size) {
    // A buffer of its own, so that a sanitizer sees reads past the end.
    const std::vector<std::byte> cut(file.begin(), file.begin() + size);
    const Decoded decoded = decode(cut);
    EXPECT_EQ(decoded.state, EntryState::kDamaged) << size;
    EXPECT_FALSE(decoded.reason.empty());
  }
}

TEST(EntryTest, EveryFlippedBitIsDamage) {
  const auto file = sample_entry(64);
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    auto copy = file;
    copy[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    EXPECT_EQ(decode(copy).state, EntryState::kDamaged) << bit;
  }
}

TEST(EntryTest, ExtensionIsDamage) {
  for (std::size_t extra : {1, 4, 16, 4096}) {
    auto file = sample_entry();
    file.resize(file.size() + extra);
    EXPECT_EQ(decode(file).state, EntryState::kDamaged) << extra;
  }
}

TEST(EntryTest, EverySealedByteChangeIsBounded) {
  // With the digest made right, lengths and fields may say anything; nothing
  // may be read outside the buffer.
  const auto file = sample_entry(64);
  for (std::size_t at = 0; at + 16 < file.size(); ++at) {
    for (unsigned value : {0x00u, 0x01u, 0x7fu, 0x80u, 0xffu}) {
      auto copy = file;
      copy[at] = static_cast<std::byte>(value);
      seal(copy);
      const Decoded decoded = decode(copy);
      EXPECT_EQ(decoded.entry.has_value(), decoded.state == EntryState::kGood);
    }
  }
}

struct SealedCase {
  std::size_t at;
  unsigned value;
  EntryState state;
};

TEST(EntryTest, SealedFieldsAreStillChecked) {
  const std::vector<SealedCase> cases = {
      {0, 'L', EntryState::kDamaged},     // magic
      {8, 0, EntryState::kDamaged},       // version 0
      {8, 2, EntryState::kNewerFormat},   // a later version
      {12, 1, EntryState::kDamaged},      // reserved
      {24, 0, EntryState::kDamaged},      // kind
      {24, 4, EntryState::kDamaged},      // kind
      {28, 0xff, EntryState::kDamaged},   // key size
      {31, 0xff, EntryState::kDamaged},   // key size, huge
      {32, 0xff, EntryState::kDamaged},   // name size
      {36, 0, EntryState::kDamaged},      // image size
      {43, 0xff, EntryState::kDamaged},   // image size, beyond any file
      {64, 1, EntryState::kDamaged},      // reserved
      {75, 0xff, EntryState::kDamaged}};  // compile time: NaN with the next
  for (const SealedCase& each : cases) {
    auto file = sample_entry();
    file[each.at] = static_cast<std::byte>(each.value);
    if (each.at == 75) file[74] = static_cast<std::byte>(0xff);
    seal(file);
    EXPECT_EQ(decode(file).state, each.state) << "byte " << each.at;
  }
}

TEST(EntryTest, RandomBytesAreDamage) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> bytes(random() % 500);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    if (round % 2 == 0 && bytes.size() > 40) {
      const auto good = sample_entry(1);
      std::copy(good.begin(), good.begin() + 16, bytes.begin());
    }
    EXPECT_NE(decode(bytes).state, EntryState::kGood);
  }
}

}  // namespace
}  // namespace logpjit::cache
