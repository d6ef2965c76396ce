// Who holds a byte of a lock file, for the message of a time-out.
#pragma once

#include <sys/types.h>

#include <string>

#include "cache/file_system.hpp"

namespace logpjit::cache {

/// "process 123 (python3)", or a sentence saying that it cannot be seen from
/// here. Looks through /proc, since the system does not say for locks of open
/// files; slow.
std::string lock_holder(FileSystem& files, const std::string& lock_path,
                        off_t offset);

}  // namespace logpjit::cache
