// GNU build-id notes, of loaded libraries and of files.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <cstring>
#include <span>

#include "runtime/dynamic_library.hpp"

namespace logpjit::runtime {
namespace {

std::string hex(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

/// The build-id among the notes of one PT_NOTE segment; empty without one.
std::string find_build_id(std::span<const unsigned char> notes) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes.data(), sizeof header);
    const std::size_t name = sizeof header;
    const std::size_t content = name + ((header.n_namesz + 3u) & ~3u);
    const std::size_t next = content + ((header.n_descsz + 3u) & ~3u);
    if (next > notes.size() || next < content) break;
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
        std::memcmp(notes.data() + name, "GNU", 4) == 0) {
      return hex(notes.subspan(content, header.n_descsz));
    }
    notes = notes.subspan(next);
  }
  return {};
}

struct LoadedSearch {
  ElfW(Addr) base;
  std::string id;
};

int visit(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<LoadedSearch*>(data);
  if (info->dlpi_addr != search.base) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* begin = reinterpret_cast<const unsigned char*>(info->dlpi_addr +
                                                               segment.p_vaddr);
    search.id = find_build_id({begin, segment.p_memsz});
    if (!search.id.empty()) break;
  }
  return 1;
}

/// A file read piecewise; every read is whole or refused.
class File {
 public:
  explicit File(const std::filesystem::path& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool read(void* to, std::size_t size, std::uint64_t offset) const {
    return descriptor_ >= 0 &&
           ::pread(descriptor_, to, size, static_cast<off_t>(offset)) ==
               static_cast<ssize_t>(size);
  }

 private:
  int descriptor_;
};

constexpr std::uint64_t kLargestNote = 65536;

}  // namespace

std::string DynamicLibrary::build_id() const {
  link_map* map = nullptr;
  if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return {};
  LoadedSearch search{map->l_addr, {}};
  dl_iterate_phdr(visit, &search);
  return search.id;
}

std::string file_build_id(const std::filesystem::path& path) {
  const File file(path);
  ElfW(Ehdr) header;
  if (!file.read(&header, sizeof header, 0) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_phentsize != sizeof(ElfW(Phdr))) {
    return {};
  }
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment;
    const std::uint64_t at = header.e_phoff + i * sizeof segment;
    if (!file.read(&segment, sizeof segment, at)) return {};
    if (segment.p_type != PT_NOTE || segment.p_filesz > kLargestNote) continue;
    std::vector<unsigned char> notes(segment.p_filesz);
    if (!file.read(notes.data(), notes.size(), segment.p_offset)) return {};
    std::string id = find_build_id(notes);
    if (!id.empty()) return id;
  }
  return {};
}

}  // namespace logpjit::runtime
