// Reading entries from one file that nobody vouches for.
#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <set>

#include "cache/atomic_file.hpp"
#include "cache/bundle.hpp"
#include "cache/bundle_format.hpp"
#include "cache/byte_reader.hpp"
#include "cache/digest.hpp"
#include "cache/entry.hpp"
#include "cache/entry_file.hpp"
#include "cache/entry_name.hpp"
#include "cache/key.hpp"
#include "cache/maintenance.hpp"
#include "logpjit/error.hpp"

namespace logpjit::cache {
namespace {

constexpr std::size_t kMaxNameBytes = 255;

struct Member {
  std::string name;
  std::vector<std::byte> entry;
};

/// One pass over the file: every member is verified before it is handed on.
class BundleReader {
 public:
  BundleReader(FileSystem& files, const std::filesystem::path& path)
      : files_(files), path_(path.string()) {
    // O_NONBLOCK: a FIFO must not make the caller wait.
    file_ = OpenFile(files, files.open(path_, O_RDONLY | O_NONBLOCK, 0));
    struct stat status {};
    if (!file_.is_open() || files.status(file_.number(), status) != 0) {
      refuse(std::strerror(file_.is_open() ? EIO : file_.error()));
    }
    if (!S_ISREG(status.st_mode)) refuse("it is not a regular file");
    size_ = static_cast<std::uint64_t>(status.st_size);
  }

  void pass(const std::function<void(const Member&)>& use) {
    offset_ = 0;
    names_.clear();
    DigestStream all;
    read_head(all);
    while (auto member = next(all)) use(*member);
    read_end(all);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} is not a usable export: {}; nothing of it was "
                            "imported",
                            path_, why));
  }

  [[noreturn]] void refuse(const std::string& name,
                           const std::string& why) const {
    // Names come from outside: no control characters on a terminal.
    std::string shown;
    for (char c : name) shown += c >= ' ' && c <= '~' ? c : '?';
    refuse(fmt::format("member \"{}\" {}", shown, why));
  }

  std::vector<std::byte> take(std::uint64_t bytes) {
    if (bytes > size_ - offset_) refuse("it is cut short");
    std::vector<std::byte> result(static_cast<std::size_t>(bytes));
    const ssize_t got = read_all(files_, file_.number(), result.data(),
                                 result.size(), static_cast<off_t>(offset_));
    if (got < 0) refuse(std::strerror(static_cast<int>(-got)));
    if (static_cast<std::uint64_t>(got) < bytes) refuse("it is cut short");
    offset_ += bytes;
    return result;
  }

  std::vector<std::byte> take(std::uint64_t bytes, DigestStream& all) {
    auto result = take(bytes);
    all.add(result);
    return result;
  }

  void read_head(DigestStream& all) {
    const auto bytes = take(kBundleHeadBytes, all);
    ByteReader reader(bytes);
    if (reader.text(kBundleMagic.size()) != kBundleMagic) {
      refuse("it does not begin like one");
    }
    const std::uint32_t version = reader.u32();
    if (version != kBundleFormat || reader.u32() != 0) {
      refuse(
          fmt::format("format version {} is not {}", version, kBundleFormat));
    }
  }

  std::optional<Member> next(DigestStream& all) {
    const auto bytes = take(kMemberHeadBytes, all);
    ByteReader reader(bytes);
    const std::uint32_t name_bytes = reader.u32();
    const std::uint32_t zero = reader.u32();
    const std::uint64_t entry_bytes = reader.u64();
    if (name_bytes == 0 && zero == 0 && entry_bytes == 0) return std::nullopt;
    if (zero != 0 || name_bytes == 0 || name_bytes > kMaxNameBytes) {
      refuse(fmt::format("the member at byte {} has no valid head",
                         offset_ - kMemberHeadBytes));
    }
    Member member;
    const auto name = take(name_bytes, all);
    member.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
    if (!is_entry_name(member.name)) {
      refuse(member.name, "is not named like an entry");
    }
    if (entry_bytes > kMaxEntryBytes) {
      refuse(member.name, fmt::format("claims {} bytes", entry_bytes));
    }
    member.entry = take(entry_bytes, all);
    check(member);
    return member;
  }

  void check(const Member& member) {
    if (!names_.insert(member.name).second) {
      refuse(member.name, "occurs twice");
    }
    const Decoded decoded = decode(member.entry);
    if (!decoded.entry) {
      refuse(member.name, fmt::format("is damaged: {}", decoded.reason));
    }
    const auto key = Key::parse(decoded.entry->key_text);
    if (!key || entry_name(*key) != member.name) {
      refuse(member.name, "holds another key than its name says");
    }
  }

  void read_end(DigestStream& all) {
    const auto count = take(sizeof(std::uint64_t), all);
    if (ByteReader(count).u64() != names_.size()) {
      refuse("its number of members is wrong");
    }
    const Digest expected = all.value();
    const auto digest = take(expected.size());
    if (!std::equal(digest.begin(), digest.end(), expected.begin())) {
      refuse("its digest is wrong");
    }
    if (offset_ != size_) refuse("something follows its end");
  }

  FileSystem& files_;
  const std::string path_;
  OpenFile file_;
  std::uint64_t size_ = 0;
  std::uint64_t offset_ = 0;
  std::set<std::string> names_;
};

void add(FileSystem& files, const std::string& directory, const Member& member,
         ImportResult& result) {
  const FileRead there = read_entry_file(files, directory + "/" + member.name);
  if (there.state == FileRead::State::kGood) {
    ++result.present;
    return;
  }
  const int error = publish_file(files, directory, member.name, member.entry);
  if (error != 0) {
    throw Error(ErrorCode::kIo,
                fmt::format("cannot write to {}: {}; {} entries were imported "
                            "before",
                            directory, std::strerror(-error), result.added));
  }
  ++result.added;
}

}  // namespace

ImportResult import_entries(FileSystem& files,
                            const std::filesystem::path& file,
                            const std::filesystem::path& directory) {
  BundleReader reader(files, file);
  reader.pass([](const Member&) {});
  const auto path = trusted_directory(files, directory, Role::kUser, true);
  ImportResult result;
  // Verified again on the way: the file may change between the passes.
  reader.pass([&](const Member& member) { add(files, *path, member, result); });
  return result;
}

}  // namespace logpjit::cache
