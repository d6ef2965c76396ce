// Divergences to be timed.
#pragma once

#include <memory>

#include "tuning/bench_subject.hpp"

namespace logpjit::tuning {

/// The forward direction's value, or its gradient of the student, as the
/// specification's pass says.
std::unique_ptr<TunableSubject> make_kl_subject(Runtime& runtime,
                                                const KernelSpec& spec,
                                                std::int64_t rows,
                                                const BenchVariant& variant);

}  // namespace logpjit::tuning
