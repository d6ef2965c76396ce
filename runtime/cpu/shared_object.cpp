// Writes the image into an anonymous file and hands its path to the loader.
#include "runtime/cpu/shared_object.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "logpjit/error.hpp"
#include "runtime/cpu/temporary_directory.hpp"

namespace logpjit::runtime {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::kDriver,
              fmt::format("cannot load the kernel's shared object: {}", why));
}

template <typename T>
T read_at(std::span<const std::byte> bytes, std::size_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) {
    refuse("the file is cut short");
  }
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// The loader maps what the headers promise and dies where the file is shorter.
void check_complete(std::span<const std::byte> bytes) {
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN) {
    refuse("it is no 64-bit ELF shared object");
  }
  for (std::size_t index = 0; index < header.e_phnum; ++index) {
    const auto segment =
        read_at<Elf64_Phdr>(bytes, header.e_phoff + index * sizeof(Elf64_Phdr));
    if (segment.p_offset > bytes.size() ||
        segment.p_filesz > bytes.size() - segment.p_offset) {
      refuse("the file is cut short");
    }
  }
}

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

/// "/proc/self/fd/<file>", spelled differently each time: the loader takes a
/// path it has seen for the object it has loaded, but numbers are reused.
std::string unique_path(int file) {
  static std::atomic<std::uint32_t> loads{0};
  std::string path = "/proc/self/fd/";
  for (std::uint32_t bits = ++loads; bits != 0; bits >>= 1) {
    path += (bits & 1) != 0 ? "./" : "/";
  }
  return fmt::format("{}{}", path, file);
}

void* open_in_memory(std::span<const std::byte> bytes) {
  const int file = memfd_create("logpjit_kernel", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  void* handle = write_all(file, bytes)
                     ? dlopen(unique_path(file).c_str(), RTLD_NOW | RTLD_LOCAL)
                     : nullptr;
  close(file);
  return handle;
}

// For systems that forbid code in anonymous files.
void* open_in_directory(std::span<const std::byte> bytes) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() / "kernel.so";
  write_file(path, bytes);
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

std::string loader_error() {
  const char* text = dlerror();
  return text != nullptr ? text : "no anonymous file can be made";
}

void* open_anywhere(std::span<const std::byte> bytes) {
  if (void* handle = open_in_memory(bytes)) return handle;
  const std::string why = loader_error();
  try {
    if (void* handle = open_in_directory(bytes)) return handle;
  } catch (const Error& error) {
    refuse(fmt::format("{}; {}", why, error.message()));
  }
  refuse(loader_error());
}

}  // namespace

SharedObject::SharedObject(std::span<const std::byte> bytes,
                           const std::string& entry,
                           const device::HostAbi& abi) {
  check_complete(bytes);
  handle_ = open_anywhere(bytes);
  try {
    run_ = reinterpret_cast<device::HostRun*>(symbol(entry));
    auto* bind = reinterpret_cast<device::HostBind*>(symbol("logpjit_bind"));
    kernel_ = bind(&abi);
    if (kernel_ == nullptr) refuse("it was made for another executor");
  } catch (...) {
    dlclose(handle_);
    throw;
  }
}

SharedObject::~SharedObject() { dlclose(handle_); }

void* SharedObject::symbol(const std::string& name) const {
  void* address = dlsym(handle_, name.c_str());
  if (address == nullptr) refuse(fmt::format("it exports no {}", name));
  return address;
}

}  // namespace logpjit::runtime
