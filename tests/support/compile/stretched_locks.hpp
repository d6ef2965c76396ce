// Locks that stay taken for longer than they would.
#pragma once

namespace logpjit::testing {

/// From now on, in all threads but the first, the next `times` locks, pieces of
/// once-only work and makings of static objects take this much longer. Nothing
/// under a sanitizer, which has such functions of its own.
void stretch_locks(int milliseconds, int times);

}  // namespace logpjit::testing
