// Row operations (logp, entropy, ...) to be timed.
#pragma once

#include <memory>

#include "tuning/bench_subject.hpp"

namespace logpjit::tuning {

/// Forward, backward, or both in one call, as the specification says.
std::unique_ptr<TunableSubject> make_row_subject(Runtime& runtime,
                                                 const KernelSpec& spec,
                                                 std::int64_t rows,
                                                 const BenchVariant& variant);

}  // namespace logpjit::tuning
