// Says in words where threads wait.
#pragma once

#include <string>

#include "runtime/cpu/fiber.hpp"

namespace logpjit::runtime {

/// "sync_threads", "barrier 3 (of 64 threads)", ...
std::string describe(const Wait& wait);

/// The whereabouts of every thread of the cluster, runs of alike ones in one
/// phrase: "block 4: threads 0-31 wait at sync_threads, thread 32 has
/// returned". Long lists are cut short.
std::string describe_threads(const Group& group);

}  // namespace logpjit::runtime
